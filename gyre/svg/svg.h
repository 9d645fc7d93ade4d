// The one place where text of SVG pictures is measured and written, so that none is cut. A viewer's font is not known:
// measures are those of DejaVu Sans, which is as wide as fonts for screens come.
#pragma once

#include <string>
#include <string_view>

namespace gyre {

struct SvgFont {
  double size = 12;  // pixels
  bool bold = false;
};
inline constexpr SvgFont kSvgLabel{12, false}, kSvgTitle{14, true};

// In pixels. A character beyond ASCII counts as the widest.
double svg_text_width(std::string_view text, SvgFont font = kSvgLabel);
// For text and attributes.
std::string svg_escaped(std::string_view text);
// anchor: start, middle or end. more: attributes.
std::string svg_text(double x, double y, const char* anchor, std::string_view text, SvgFont font = kSvgLabel,
                     std::string_view more = "");
// The document's first lines, with a white page; "</svg>\n" ends it.
std::string svg_begin(double width, double height);

}  // namespace gyre
