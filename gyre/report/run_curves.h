// The curves of a run, from its metrics.jsonl, for charts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gyre/report/metrics.h"
#include "gyre/report/metrics_follower.h"
#include "gyre/report/metrics_reader.h"
#include "gyre/report/run_totals.h"

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
  std::vector<RunCurve> curves;                          // only curves with at least one point
  int64_t steps = 0;                                     // updates made, also those without a record
  std::optional<MetricsEnd> end;                         // of the last session
  RunTotals totals;                                      // of all sessions
  std::map<int64_t, std::map<int64_t, int64_t>> delays;  // stage -> delay -> microbatches
  // [process]: peak bytes in the last session, of large tensors and of resident memory. Empty if not recorded.
  std::vector<double> peak_tensors, peak_resident;
};

// Collects the curves line by line.
class CurveCollector {
 public:
  void take(const MetricsLine& line);
  // Of the lines so far. Curves are thinned to `max_points` points (thinning.h).
  RunCurves curves(size_t max_points) const;

 private:
  // Adds the line's values to those of the curves that are its fields.
  void add_points(const MetricsLine& line, std::span<RunCurve> curves) const;

  SessionClock clock_;
  TotalsCollector totals_;
  CurvePoint at_;  // the last update
  std::array<RunCurve, 4> step_curves_{{{"loss", {}}, {"lr", {}}, {"grad_norm", {}}, {"tokens_per_second", {}}}};
  std::array<RunCurve, 2> evaluation_curves_{{{"val_loss", {}}, {"ema_val_loss", {}}}};
  RunCurves rest_;  // everything but the curves
};

// Reads the curves of a run that may go on. Of metrics.jsonl it reads only what is new.
class RunCurvesReader {
 public:
  explicit RunCurvesReader(std::filesystem::path metrics);
  // If the file is missing: no curves. Throws InputError for a line that cannot be read.
  RunCurves read(size_t max_points);

 private:
  MetricsFollower follower_;
  CurveCollector collector_;
};

}  // namespace gyre
