// Text on a terminal, measured in columns. Every character counts as one column wide.
#pragma once

#include <string>
#include <string_view>

namespace gyre {

// The number of columns of a text.
int columns(std::string_view text);
// The first `width` columns of the text.
std::string cut(const std::string& text, int width);

}  // namespace gyre
