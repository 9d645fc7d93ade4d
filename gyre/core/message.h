// Messages for people: progress, warnings, errors.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace gyre {

// Writes `text` unchanged and flushes. A message that cannot be written (a full disk, a pipe whose reader has gone) is
// dropped without an error, so that no run ends for it.
void say(std::FILE* out, std::string_view text);

// `text`, of any number of lines, as a terminal may get it: each line is printable(), since a user's text or a file's
// name in it may have any characters.
std::string printable_lines(std::string_view text);

// Writes printable_lines(text) and a newline, as say() does.
void say_lines(std::FILE* out, std::string_view text);

}  // namespace gyre
