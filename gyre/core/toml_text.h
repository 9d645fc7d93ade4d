// What is refused of a text before the TOML library reads it, since some releases of the library do not survive it.
#pragma once

#include <string>
#include <string_view>

namespace gyre {

// InputError, with `origin` and line, for
//   more than 4,096 dots: tables within tables ("a.b.c") go as deep as there are dots, and are taken apart by
//   recursion; a character beyond ASCII that is neither in a comment nor in a string of one line: toml++ 3.3 asks
//   whether it is a blank, and the answer is undefined for some. TOML has no use for such characters there; strings of
//   many lines may have them by the standard, and not here.
void check_toml_text(std::string_view text, const std::string& origin);

}  // namespace gyre
