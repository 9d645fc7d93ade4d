// The figures that gyre top shows of a run, from its live.json and metrics.jsonl.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "gyre/report/live.h"
#include "gyre/report/metrics.h"
#include "gyre/report/metrics_follower.h"
#include "gyre/report/run_totals.h"
#include "gyre/report/top/loss_curve.h"

namespace gyre {

// From metrics.jsonl.
struct TopMetrics {
  std::vector<LossPoint> losses;  // finite ones, thinned as LossCurve does
  std::optional<MetricsStep> last;
  std::optional<double> val_loss;
  std::vector<std::optional<double>> delays;         // [stage], between the last two drains
  std::vector<std::optional<double>> peak_resident;  // [process], bytes
  std::optional<MetricsEnd> end;                     // if the last session recorded its end
  RunTotals totals;                                  // of all sessions
};

struct TopFigures {
  std::string name;
  double now = 0;  // seconds since 1970
  bool begun = false;
  std::optional<LiveRun> live;  // empty: there is no live.json
  bool gone = false;            // the process that wrote `live` is gone, as is_gone() says
  bool in_sight = true;         // that process can be looked at; otherwise it may be there, and be saving
  TopMetrics metrics;
  std::string problem;  // why the run cannot be read now; all else is from before
  bool running() const { return live && !live->ended() && !gone; }
};
// {"run":..., "running":..., "live":{...}, ...}
std::string to_json(const TopFigures& figures);

// Reads a run repeatedly. Of metrics.jsonl it reads only what is new.
class TopReader {
 public:
  // Throws InputError if `run` is not the directory of a run.
  explicit TopReader(std::filesystem::path run);
  // Throws InputError for a damaged file, and if the run is not there any more.
  TopFigures read(double now);
  // The same for one who watches: if the run cannot be read, only `now` and `problem` of the figures change.
  void update(TopFigures& figures, double now);

 private:
  std::filesystem::path run_;
  MetricsFollower follower_;
  TopMetrics metrics_;  // but for the losses
  LossCurve losses_;
  TotalsCollector totals_;
};

}  // namespace gyre
