// What a run measures of itself: costs for the simulator and, if asked for, a timeline.
#pragma once

#include <cstdint>
#include <vector>

#include "gyre/runtime/pipeline.h"
#include "gyre/runtime/segment.h"
#include "gyre/simulate/cost_model.h"

namespace gyre {

// [stage]: bytes of the optimizers' states in this process.
std::vector<int64_t> optimizer_bytes(const Pipeline& pipeline);

class RunMeasurements {
 public:
  // `seconds_before`: training time before the segment, by which its trace is shifted, or by more if it would lie over
  // the one before.
  void add(const Segment& segment, const SegmentReport& report, double seconds_before);

  bool empty() const { return costs_.empty(); }
  CostModel cost_model(const Pipeline& pipeline, const std::vector<int64_t>& optimizer_bytes,
                       int64_t tokens_per_microbatch) const;
  // Seconds for which training waited for a checkpoint.
  void add_save_wait(double seconds) {
    save_wait_seconds_ += seconds;
    ++saves_;
  }
  // [worker]; microbatches and windows are numbered as in the whole run.
  const std::vector<std::vector<TimedAction>>& trace() const { return trace_; }
  int64_t traced_actions() const;

 private:
  std::vector<std::map<ActionKind, ActionCost>> costs_;  // [stage]
  std::vector<StageSizes> sizes_;                        // [stage]
  std::vector<std::vector<TimedAction>> trace_;
  double trace_end_ = 0;
  double save_wait_seconds_ = 0;
  int64_t saves_ = 0;
};

}  // namespace gyre
