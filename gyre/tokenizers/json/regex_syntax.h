// Patterns are written for the Oniguruma library, in Ruby's syntax. PCRE2 writes most of it in the same way, but some
// of that means something else there.
#pragma once

#include <string>
#include <string_view>

namespace gyre {

// PCRE2's way to write what `pattern` means to Oniguruma. InputError, beginning with `where`, for what is not known to
// have one. What neither understands is left to PCRE2 to refuse.
std::string to_pcre2(std::string_view pattern, const std::string& where);

}  // namespace gyre
