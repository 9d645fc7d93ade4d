// What a command prints: its results, on standard output. Messages for people go to stderr (gyre/core/message.h) and
// may be lost; a result that cannot be written ends the command with exit 1.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace gyre::app {

// First in main(): descriptors 0 to 2 are open, so that no file of ours is ever taken for one of them, and a pipe or a
// size limit that ends is an error where it is met instead of a signal that ends the process.
void open_standard_streams();

// Errors: RunError when it cannot be written.
void print_text(std::string_view text);

template <typename... Values>
void print(fmt::format_string<Values...> format, Values&&... values) {
  print_text(fmt::format(format, std::forward<Values>(values)...));
}

// Sees to it that what was printed is written. The command line does so at every command's end. Errors: RunError.
void flush_results();

// "gyre: WHAT" on stderr.
void print_error(std::string_view what);

}  // namespace gyre::app
