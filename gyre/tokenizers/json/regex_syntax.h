// Translates patterns from the Oniguruma library, in Ruby's syntax, to PCRE2. Most of the syntax is the same, but some
// of it has another meaning in PCRE2.
#pragma once

#include <string>
#include <string_view>

namespace gyre {

// The PCRE2 pattern with the meaning that `pattern` has in Oniguruma. Throws InputError, beginning with `where`, for
// what has no known translation. Errors in both syntaxes are left to PCRE2 to refuse.
std::string to_pcre2(std::string_view pattern, const std::string& where);

}  // namespace gyre
