// A run's time, speed and waiting over all of its sessions, from its metrics.jsonl: an "end" line has only those of the
// last session.
#pragma once

#include <cstdint>
#include <optional>

#include "gyre/report/metrics_reader.h"

namespace gyre {

struct RunTotals {
  double seconds = 0;          // of all sessions; a session that was killed ends with its last update that counts
  double earlier_seconds = 0;  // of all sessions but the last
  // While training, as in MetricsEnd. Empty if no segment says so.
  std::optional<double> tokens_per_second = {}, bubble_fraction = {};
};

// Adds them up line by line.
class TotalsCollector {
 public:
  void take(const MetricsLine& line);
  RunTotals totals() const;

 private:
  void take_segment(const MetricsLine& line);

  SessionClock clock_;
  double seconds_ = 0;
  int64_t step_ = 0, tokens_ = 0;               // at the last update
  std::optional<int64_t> tokens_at_begin_ = 0;  // when the segment began; empty: its record is missing
  int64_t trained_tokens_ = 0;
  double trained_seconds_ = 0;
  double waited_ = 0, worked_or_waited_ = 0;  // seconds of all workers
};

}  // namespace gyre
