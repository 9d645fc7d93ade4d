#include "gyre/report/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace gyre {
namespace {

constexpr double kWidth = 760, kHeight = 420, kLeft = 64, kRight = 200, kTop = 36, kBottom = 48;
constexpr size_t kMostPoints = 500;
// Colours that people with colour blindness can tell apart (Okabe and Ito), but for yellow.
constexpr const char* kColours[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                    "#E69F00", "#56B4E9", "#8a8a8a", "#7f3fbf"};

// One axis: values to positions.
class Axis {
 public:
  Axis(bool log, double from, double to) : log_(log), from_(from), to_(to) {}

  bool has(double value) const { return std::isfinite(value) && (!log_ || value > 0); }
  void include(double value) {
    low_ = std::min(low_, scaled(value));
    high_ = std::max(high_, scaled(value));
  }
  double at(double value) const {
    const double range = high_ > low_ ? high_ - low_ : 1;
    return from_ + (scaled(value) - low_) / range * (to_ - from_);
  }
  // About five round numbers between the ends.
  std::vector<double> ticks() const {
    std::vector<double> result;
    if (!(low_ <= high_)) return result;
    if (log_) {
      for (auto power = std::lround(std::floor(low_)); power <= std::lround(std::ceil(high_)); ++power) {
        for (const double digit : {1.0, 2.0, 5.0}) {
          const double tick = digit * std::pow(10.0, static_cast<double>(power));
          if (scaled(tick) >= low_ - 1e-9 && scaled(tick) <= high_ + 1e-9) result.push_back(tick);
        }
      }
      return result;
    }
    const double rough = std::max(high_ - low_, 1e-12) / 5;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    double step = power;
    for (const double factor : {2.0, 5.0, 10.0}) {
      if (step < rough) step = factor * power;
    }
    const auto first = std::lround(std::ceil(low_ / step)), last = std::lround(std::floor(high_ / step + 1e-9));
    for (auto i = first; i <= last; ++i) result.push_back(static_cast<double>(i) * step);
    return result;
  }

 private:
  double scaled(double value) const { return log_ ? std::log10(value) : value; }
  bool log_;
  double from_, to_;
  double low_ = std::numeric_limits<double>::infinity(), high_ = -std::numeric_limits<double>::infinity();
};

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '&')
      result += "&amp;";
    else
      result += c;
  }
  return result;
}

std::string number(double value) {
  if (value >= 1e4) return fmt::format("{:g}k", value / 1000);
  return fmt::format("{:.4g}", value);
}

std::string text_at(double x, double y, const char* anchor, const std::string& text, const char* more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y, anchor, more,
                     escaped(text));
}

}  // namespace

std::string to_svg(const LineChart& chart) {
  Axis x(chart.log_x, kLeft, kWidth - kRight), y(chart.log_y, kHeight - kBottom, kTop);
  for (const ChartLine& line : chart.lines) {
    for (const auto& [px, py] : line.points) {
      if (!x.has(px) || !y.has(py)) continue;
      x.include(px);
      y.include(py);
    }
  }
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
      kWidth, kHeight);
  svg += text_at(kLeft, 20, "start", chart.title, "font-size=\"14\" font-weight=\"bold\"");
  for (const double tick : x.ticks()) {
    svg += fmt::format("<path d=\"M{0:.1f} {1}V{2}\" stroke=\"#dddddd\"/>\n", x.at(tick), kTop, kHeight - kBottom);
    svg += text_at(x.at(tick), kHeight - kBottom + 16, "middle", number(tick));
  }
  for (const double tick : y.ticks()) {
    svg += fmt::format("<path d=\"M{0} {1:.1f}H{2}\" stroke=\"#dddddd\"/>\n", kLeft, y.at(tick), kWidth - kRight);
    svg += text_at(kLeft - 6, y.at(tick) + 4, "end", number(tick));
  }
  svg += text_at((kLeft + kWidth - kRight) / 2, kHeight - 10, "middle", chart.x_label);
  svg += text_at(14, (kTop + kHeight - kBottom) / 2, "middle", chart.y_label,
                 fmt::format("transform=\"rotate(-90 14 {})\"", (kTop + kHeight - kBottom) / 2).c_str());
  for (size_t i = 0; i < chart.lines.size(); ++i) {
    const ChartLine& line = chart.lines[i];
    const char* colour = kColours[i % std::size(kColours)];
    const size_t stride = std::max<size_t>(1, (line.points.size() + kMostPoints - 1) / kMostPoints);
    std::string path, dots;
    for (size_t p = 0; p < line.points.size(); ++p) {
      if (p % stride != 0 && p + 1 != line.points.size()) continue;
      const auto& [px, py] = line.points[p];
      if (!x.has(px) || !y.has(py)) continue;
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x.at(px), y.at(py));
      if (chart.markers) {
        dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x.at(px), y.at(py), colour);
      }
    }
    if (path.empty()) continue;
    const char* dash = i >= std::size(kColours) ? " stroke-dasharray=\"5 3\"" : "";
    svg += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"{}/>\n{}", path, colour, dash,
                       dots);
    const double row = kTop + 8 + 18 * static_cast<double>(i);
    svg += fmt::format("<path d=\"M{} {}h18\" stroke=\"{}\" stroke-width=\"2.5\"{}/>\n", kWidth - kRight + 12, row,
                       colour, dash);
    svg += text_at(kWidth - kRight + 36, row + 4, "start", line.name);
  }
  return svg + "</svg>\n";
}

}  // namespace gyre
