#include "gyre/svg/svg.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>

#include "gyre/core/text.h"

namespace gyre {
namespace {

// Advance widths of DejaVu Sans in thousandths of its size, from the space to the tilde.
constexpr std::array<int16_t, 95> kAdvances = {
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361,  318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635,  611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352,  635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592,  525, 636, 337, 636, 838};
constexpr double kBold = 1.25;  // no bold letter is wider by more than this factor
constexpr double kWidest = 1000;

}  // namespace

double svg_text_width(std::string_view text, SvgFont font) {
  double width = 0;
  for (const char c : printable(text)) {
    const auto code = static_cast<unsigned char>(c);
    if ((code & 0xC0) == 0x80) continue;  // a continuation byte
    width += code >= 32 && code < 127 ? kAdvances[code - 32] : kWidest;
  }
  return width / 1000 * font.size * (font.bold ? kBold : 1);
}

std::string svg_escaped(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    switch (c) {
      case '<':
        result += "&lt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string svg_text(double x, double y, const char* anchor, std::string_view text, SvgFont font,
                     std::string_view more) {
  std::string look;
  if (font.size != kSvgLabel.size) look += fmt::format(" font-size=\"{}\"", font.size);
  if (font.bold) look += " font-weight=\"bold\"";
  if (!more.empty()) look += fmt::format(" {}", more);
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, look,
                     svg_escaped(text));
}

std::string svg_begin(double width, double height) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
      width, height);
}

}  // namespace gyre
