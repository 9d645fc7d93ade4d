#include "gyre/report/top/screen_text.h"

#include <algorithm>
#include <cmath>

#include "gyre/core/utf8.h"
#include "gyre/report/columns.h"

namespace gyre {
namespace {

std::string repeated(const char* character, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += character;
  return text;
}

}  // namespace

std::string shortened(const std::string& name, int width) {
  if (columns(name) <= width) return name;
  size_t at = 0;
  for (int left = columns(name) - width + 1; left > 0; --left) at += character_at(name, at).bytes;
  return "…" + name.substr(at);
}

std::string fitting(const std::vector<std::string>& parts, const char* separator, int width) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string longer = text.empty() ? parts[i] : text + separator + parts[i];
    const bool last = i + 1 == parts.size();
    if (columns(longer) + (last ? 0 : 2) > width) return text.empty() ? "" : text + " …";
    text = longer;
  }
  return text;
}

std::string bar(double share, int width) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width * 8));
  std::string text = repeated("█", eighths / 8);
  text += kEighths[eighths % 8];
  return text + repeated("░", width - columns(text));
}

std::vector<std::string> braille_curve(const std::vector<double>& values, int width, int height) {
  const int across = 2 * width, down = 4 * height;
  std::vector<std::vector<unsigned>> cells(static_cast<size_t>(height),
                                           std::vector<unsigned>(static_cast<size_t>(width)));
  const auto dot = [&](int x, int y) {
    static constexpr unsigned kDots[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    cells[static_cast<size_t>(y / 4)][static_cast<size_t>(x / 2)] |= kDots[y % 4][x % 2];
  };
  if (!values.empty()) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    const double range = *high > *low ? *high - *low : 1;
    const double lowest_level = *high > *low ? *low : *low - 0.5;
    const auto level = [&](double value) {
      return std::clamp(static_cast<int>(std::lround((1 - (value - lowest_level) / range) * (down - 1))), 0, down - 1);
    };
    const auto count = static_cast<double>(values.size());
    int before = -1;
    for (int x = 0; x < across; ++x) {
      const auto begin = static_cast<size_t>(x * count / across);
      const auto end = std::max(begin + 1, static_cast<size_t>((x + 1) * count / across));
      const auto [lowest, highest] =
          std::minmax_element(values.begin() + static_cast<std::ptrdiff_t>(begin),
                              values.begin() + static_cast<std::ptrdiff_t>(std::min(end, values.size())));
      int top = level(*highest), bottom = level(*lowest);
      if (before >= 0) {  // joins the columns, so that the line has no gaps
        top = std::min(top, before);
        bottom = std::max(bottom, before);
      }
      for (int y = top; y <= bottom; ++y) dot(x, y);
      before = level(values[std::min(end, values.size()) - 1]);
    }
  }
  std::vector<std::string> lines(static_cast<size_t>(height));
  for (size_t y = 0; y < cells.size(); ++y) {
    for (const unsigned dots : cells[y]) append_character(lines[y], static_cast<char32_t>(0x2800 + dots));
  }
  return lines;
}

}  // namespace gyre
