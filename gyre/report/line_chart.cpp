#include "gyre/report/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <tuple>

#include "gyre/report/thinning.h"
#include "gyre/svg/svg.h"

namespace gyre {
namespace {

constexpr double kPlotEnd = 560, kHeight = 420, kTop = 36, kBottom = 48;
constexpr double kLegend = 36, kMargin = 10;  // from the plot to the legend's names; at the right and lower edges
constexpr size_t kMaxPoints = 500;
// Colours that people with colour blindness can tell apart (Okabe and Ito), without yellow.
constexpr const char* kColours[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                    "#E69F00", "#56B4E9", "#8a8a8a", "#7f3fbf"};

// One axis: maps values to positions.
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
  // About five round numbers in the axis's range; on a log axis 1, 2 and 5 times powers of ten.
  std::vector<double> ticks() const {
    std::vector<double> result;
    if (!(low_ <= high_)) return result;
    // One value, or values too close for their digits to differ: it is the only tick.
    if (high_ - low_ <= 1e-12 * std::max(std::abs(low_), std::abs(high_))) return {log_ ? std::pow(10, low_) : low_};
    if (log_) {
      for (auto power = std::lround(std::floor(low_)); power <= std::lround(std::ceil(high_)); ++power) {
        for (const double digit : {1.0, 2.0, 5.0}) {
          const double tick = digit * std::pow(10.0, static_cast<double>(power));
          if (scaled(tick) >= low_ - 1e-9 && scaled(tick) <= high_ + 1e-9) result.push_back(tick);
        }
      }
      return result;
    }
    const double rough = (high_ - low_) / 5;
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

std::string number(double value) {
  for (const auto& [from, unit, name] : {std::tuple(1e9, 1e9, "B"), {1e6, 1e6, "M"}, {1e4, 1e3, "k"}}) {
    if (value >= from && value < 1e12) return fmt::format("{:g}{}", value / unit, name);
  }
  return fmt::format("{:.4g}", value);
}

}  // namespace

std::string to_svg(const LineChart& chart) {
  Axis y(chart.log_y, kHeight - kBottom, kTop);
  const auto each_point = [&](const auto& visit) {
    for (const ChartLine& line : chart.lines) {
      for (const auto& [px, py] : line.points) visit(px, py);
    }
  };
  const auto is_on = [&](double px, double py) { return std::isfinite(px) && (!chart.log_x || px > 0) && y.has(py); };
  each_point([&](double px, double py) {
    if (is_on(px, py)) y.include(py);
  });
  // Makes room for the numbers beside the plot, for the lines' names and for the title.
  double numbers = 0, names = 0;
  for (const double tick : y.ticks()) numbers = std::max(numbers, svg_text_width(number(tick)));
  for (const ChartLine& line : chart.lines) names = std::max(names, svg_text_width(line.name));
  const double left = std::max(64.0, 30 + numbers), right = left + kPlotEnd - 64;
  const double width =
      std::max({760.0, right + kLegend + names + kMargin, left + svg_text_width(chart.title, kSvgTitle) + kMargin});
  const double height = std::max(kHeight, kTop + 18 * static_cast<double>(chart.lines.size()) + kMargin);
  Axis x(chart.log_x, left, right);
  each_point([&](double px, double py) {
    if (is_on(px, py)) x.include(px);
  });
  std::string svg = svg_begin(width, height);
  svg += svg_text(left, 20, "start", chart.title, kSvgTitle);
  for (const double tick : x.ticks()) {
    svg += fmt::format("<path d=\"M{0:.1f} {1}V{2}\" stroke=\"#dddddd\"/>\n", x.at(tick), kTop, kHeight - kBottom);
    svg += svg_text(x.at(tick), kHeight - kBottom + 16, "middle", number(tick));
  }
  for (const double tick : y.ticks()) {
    svg += fmt::format("<path d=\"M{0} {1:.1f}H{2}\" stroke=\"#dddddd\"/>\n", left, y.at(tick), right);
    svg += svg_text(left - 6, y.at(tick) + 4, "end", number(tick));
  }
  svg += svg_text((left + right) / 2, kHeight - 10, "middle", chart.x_label);
  svg += svg_text(14, (kTop + kHeight - kBottom) / 2, "middle", chart.y_label, kSvgLabel,
                  fmt::format("transform=\"rotate(-90 14 {})\"", (kTop + kHeight - kBottom) / 2));
  for (size_t i = 0; i < chart.lines.size(); ++i) {
    const ChartLine& line = chart.lines[i];
    const char* colour = kColours[i % std::size(kColours)];
    ChartPoints shown;
    std::ranges::copy_if(line.points, std::back_inserter(shown),
                         [&](const auto& point) { return is_on(point.first, point.second); });
    std::string path, dots;
    for (const auto& [px, py] : thinned(shown, kMaxPoints, &ChartPoints::value_type::second)) {
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
    svg += fmt::format("<path d=\"M{} {}h18\" stroke=\"{}\" stroke-width=\"2.5\"{}/>\n", right + 12, row, colour, dash);
    svg += svg_text(right + kLegend, row + 4, "start", line.name);
  }
  return svg + "</svg>\n";
}

}  // namespace gyre
