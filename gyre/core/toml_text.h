// Refuses text that some releases of the TOML library do not survive, before the library reads it.
#pragma once

#include <string>
#include <string_view>

namespace gyre {

// Throws InputError, with `origin` and line, for
// - more than 4,096 dots: dotted keys ("a.b.c") nest tables as deep as there are dots, and the library recurses;
// - a character beyond ASCII outside a comment or a one-line string, and a quote in the middle of a word: toml++ 3.3
//   classifies such characters as blank or not, and for some the answer is undefined. TOML allows such characters only
//   in multi-line strings besides, and configurations have none.
void check_toml_text(std::string_view text, const std::string& origin);

}  // namespace gyre
