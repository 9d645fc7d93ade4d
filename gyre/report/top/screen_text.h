// Pieces of text for a screen of characters: made to fit a number of columns, and drawn with blocks and braille.
#pragma once

#include <string>
#include <vector>

namespace gyre {

// Shortens a name to `width` columns by cutting its beginning, since the end of a path says most.
std::string shortened(const std::string& name, int width);
// As many of `parts` as fit, joined with the separator; "…" at the end if some are left out.
std::string fitting(const std::vector<std::string>& parts, const char* separator, int width);

// A bar of `width` columns, in steps of an eighth of a block.
std::string bar(double share, int width);
// A curve of `values`, from left to right, as `height` lines of `width` braille characters with 2 x 4 dots each. Values
// that share a column of dots are drawn as a bar from the lowest to the highest.
std::vector<std::string> braille_curve(const std::vector<double>& values, int width, int height);

}  // namespace gyre
