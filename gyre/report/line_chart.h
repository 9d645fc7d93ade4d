// Line charts as SVG, for curves of losses and slowdowns in documents; readable on light and dark pages.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gyre {

using ChartPoints = std::vector<std::pair<double, double>>;  // x, y
struct ChartLine {
  std::string name;
  ChartPoints points;
};
struct LineChart {
  std::string title, x_label, y_label;
  bool log_x = false, log_y = false;
  bool markers = false;  // a dot at every point
  std::vector<ChartLine> lines;
};

// Lines with more than 500 points are thinned (thinning.h), which keeps their spikes. Points that are not finite, or
// not positive on a log axis, are left out.
std::string to_svg(const LineChart& chart);

}  // namespace gyre
