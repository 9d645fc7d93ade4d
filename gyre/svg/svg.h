// Measures and writes the text of SVG pictures, in this one place, so that no text is cut off. The viewer's font is
// unknown, so widths are those of DejaVu Sans, one of the widest screen fonts.
#pragma once

#include <string>
#include <string_view>

namespace gyre {

struct SvgFont {
  double size = 12;  // pixels
  bool bold = false;
};
inline constexpr SvgFont kSvgLabel{12, false}, kSvgTitle{14, true};

// The width in pixels. A character beyond ASCII counts as the widest.
double svg_text_width(std::string_view text, SvgFont font = kSvgLabel);
// Escapes `text` for use as text or in an attribute. Control characters, which XML does not have, are spelt out.
std::string svg_escaped(std::string_view text);
// A <text> element. `anchor`: start, middle or end; `more`: further attributes.
std::string svg_text(double x, double y, const char* anchor, std::string_view text, SvgFont font = kSvgLabel,
                     std::string_view more = "");
// The document's first lines, with a white page; "</svg>\n" ends it.
std::string svg_begin(double width, double height);

}  // namespace gyre
