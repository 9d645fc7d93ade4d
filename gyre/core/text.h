// Text for people: nearest-name suggestions, sizes, durations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

// The candidate that `name` is with the fewest slips of typing: one, or two for a candidate of more than five letters.
// Case and - or _ do not count.
std::optional<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates);
// "; did you mean 'width'?" for the nearest candidate, or, when none is near, "; known: a, b".
std::string suggestion(std::string_view name, const std::vector<std::string>& candidates);
// 1536 -> "1.5 KiB"; 1576, 2 -> "1.54 KiB".
std::string human_bytes(double bytes, int digits = 1);
// 3725 -> "1:02:05"; 65 -> "1:05".
std::string human_duration(double seconds);
// 12345678 -> "12.3M".
std::string human_count(double count);
// 1, "stage" -> "1 stage"; 2, "stage" -> "2 stages"; 0, "microbatch" -> "0 microbatches"; 2, "study" -> "2 studies".
std::string counted(int64_t count, std::string_view noun);
// `text` on one line that is safe for a terminal: control characters become \n, \t or \x1b.
std::string printable(std::string_view text);
// `text` as one word of a shell's command line: quoted ('a b') if it needs to be, else unchanged. Safe for a terminal:
// with control characters it is $'a\x1bb', which bash and zsh understand.
std::string shell_word(const std::string& text);
// `text` without blanks, tabs and carriage returns at its ends.
std::string_view trim(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);

}  // namespace gyre
