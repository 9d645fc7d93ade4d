// What gyre top shows of a run: its live.json, and what is in its metrics.jsonl.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gyre/report/live.h"
#include "gyre/report/metrics.h"

namespace gyre {

// Of metrics.jsonl.
struct TopMetrics {
  std::vector<std::pair<int64_t, double>> losses;  // (update, loss), those that are finite
  std::optional<MetricsStep> last;
  std::optional<double> val_loss;
  std::vector<std::optional<double>> delays;         // [stage], between the last two drains
  std::vector<std::optional<double>> peak_resident;  // [process], bytes
  std::optional<MetricsEnd> end;                     // where the last session has come to its end
};

struct TopFigures {
  std::string name;
  double now = 0;  // seconds since 1970
  bool begun = false;
  std::optional<LiveRun> live;  // nothing: the run writes none
  bool gone = false;            // whoever wrote it
  TopMetrics metrics;
  bool running() const { return live && !live->ended() && !gone; }
};
// {"run":..., "running":..., "live":{...}, ...}
std::string to_json(const TopFigures& figures);

// Reads a run again and again; of metrics that grow, what is new.
class TopReader {
 public:
  // InputError where no run is.
  explicit TopReader(std::filesystem::path run);
  // InputError for a file that is damaged.
  TopFigures read(double now);

 private:
  void read_metrics();

  std::filesystem::path run_;
  uint64_t read_ = 0;  // bytes of the metrics that are in `metrics_`
  std::string last_;   // of them
  TopMetrics metrics_;
};

}  // namespace gyre
