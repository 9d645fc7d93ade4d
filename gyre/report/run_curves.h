// The curves of a run, from its metrics.jsonl, for charts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/report/metrics.h"

namespace gyre {

struct CurvePoint {
  int64_t step = 0;
  int64_t tokens = 0;
  double seconds = 0;  // of training up to this point, over all sessions
  double value = 0;
};
struct RunCurve {
  std::string name;  // the field of metrics.jsonl
  std::vector<CurvePoint> points;
};
struct RunCurves {
  std::vector<RunCurve> curves;  // only curves with at least one point
  int64_t steps = 0;             // number of updates recorded
  std::optional<MetricsEnd> end;
  std::map<int64_t, std::map<int64_t, int64_t>> delays;  // stage -> delay -> microbatches
  // [process]: peak bytes in the last session, of large tensors and of resident memory. Empty if not recorded.
  std::vector<double> peak_tensors, peak_resident;
};

// Curves are thinned to `max_points` points. Throws InputError for a line that cannot be read.
RunCurves parse_run_curves(std::string_view metrics, const std::string& origin, size_t max_points);
// Keeps at most `max_points` points (if it is at least 4): the first and the last, and the lowest and highest of each
// of several equal stretches between.
std::vector<CurvePoint> thinned(const std::vector<CurvePoint>& points, size_t max_points);

}  // namespace gyre
