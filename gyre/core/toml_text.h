// What is refused of a text before the TOML library reads it, since some releases of the library do not survive it.
#pragma once

#include <string>
#include <string_view>

namespace gyre {

// InputError, with `origin` and line, for
// - more than 4,096 dots: tables within tables ("a.b.c") go as deep as there are dots, by recursion;
// - a character beyond ASCII that is neither in a comment nor in a string of one line, and a quote in the middle of a
//   word: toml++ 3.3 asks of characters there whether they are blanks, and for some the answer is undefined. Only in
//   strings of several lines has TOML a use for them, and configurations have none.
void check_toml_text(std::string_view text, const std::string& origin);

}  // namespace gyre
