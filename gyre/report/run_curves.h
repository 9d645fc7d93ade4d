// What metrics.jsonl says of a run, as curves that a chart can draw.
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
  double seconds = 0;  // of training up to there, all sessions together
  double value = 0;
};
struct RunCurve {
  std::string name;  // the field of metrics.jsonl
  std::vector<CurvePoint> points;
};
struct RunCurves {
  std::vector<RunCurve> curves;  // those that have a point
  int64_t steps = 0;             // updates that are recorded
  std::optional<MetricsEnd> end;
  std::map<int64_t, std::map<int64_t, int64_t>> delays;  // stage -> delay -> microbatches
  // [process] the most that it held in the last session, in bytes: of large tensors, and in all. Empty where no line
  // says.
  std::vector<double> peak_tensors, peak_resident;
};

// At most `most` points of a curve are kept: of each stretch of steps the lowest and the highest, and the first and the
// last of all. InputError for a line that cannot be read.
RunCurves parse_run_curves(std::string_view metrics, const std::string& origin, size_t most);
std::vector<CurvePoint> thinned(const std::vector<CurvePoint>& points, size_t most);

}  // namespace gyre
