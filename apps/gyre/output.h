// What a command prints: its results, on standard output. Messages for people go to stderr (gyre/core/message.h) and
// may be lost; a result that cannot be written ends the command with exit 1.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace gyre::app {

// To be called first in main(). Makes sure that descriptors 0 to 2 are open, so that no file of ours is taken for one
// of them, and that a closed pipe or a size limit is an error where it is met instead of a signal that ends the
// process.
void open_standard_streams();

// Throws RunError if it cannot be written.
void print_text(std::string_view text);

template <typename... Values>
void print(fmt::format_string<Values...> format, Values&&... values) {
  print_text(fmt::format(format, std::forward<Values>(values)...));
}

// Prints it as one line. Bytes that are no UTF-8, as a directory's name may have, become U+FFFD.
void print_object(const nlohmann::ordered_json& json);

// Makes sure that what was printed is written. Called at the end of every command. Throws RunError.
void flush_results();

// "gyre: WHAT" on stderr.
void print_error(std::string_view what);

}  // namespace gyre::app
