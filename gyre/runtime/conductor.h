// The conductor: the part of a segment that belongs to no worker. It hears their reports, reads the numbers in them and
// passes them on to the observer, ends a run that diverges, decides where the segment drains, adds up what was
// seen and compares it with the schedule's analysis. It acts only when it is asked to attend.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gyre/runtime/reports.h"
#include "gyre/runtime/segment.h"
#include "gyre/runtime/worker_links.h"
#include "gyre/runtime/worker_state.h"

namespace gyre {

// What the conductor keeps between segments.
struct ConductorState {
  std::vector<int64_t> skipped_in_a_row;  // [stage]: the last updates, as far as their gradients were not finite
};

class Conductor {
 public:
  // All arguments outlive it.
  Conductor(const PipelinePlan& plan, ConductorState& state, const Segment& segment, Transport& transport,
            SegmentObserver& observer);

  // Hears every report that has come, and answers. Divergence: a loss, or too many gradients in a row, are not finite.
  void attend();
  // Whether every worker's program has ended.
  bool finished() const { return ended_ == links_.reports.size(); }
  // Whether the segment was interrupted, and drains.
  bool interrupted() const { return interrupted_; }
  // Of the whole segment, once it has finished. RunError: delays or mismatches differ from the schedule's analysis.
  SegmentReport report(double seconds) const;

 private:
  void hear_all();
  void hear(size_t worker, Report report);
  void hear(const LossReport& report);
  void hear(const UpdateReport& report);
  std::optional<UpdateReport> joined(UpdateReport report);
  void hear(size_t worker, const HeldReport& report);
  void hear(size_t worker, FinalReport report);
  std::string describe_skip(const UpdateReport& report, int64_t in_a_row) const;
  void ask_to_hold();
  void set_limit();
  void compare_with_analysis(const SegmentReport& report) const;

  const PipelinePlan& plan_;
  ConductorState& state_;
  const Segment& segment_;
  SegmentObserver& observer_;
  ConductorLinks links_;
  std::vector<FinalReport> seen_;  // [worker]
  std::vector<int64_t> skipped_;   // [stage]
  // Of updates whose other shards have not been heard of: by stage and window, [shard].
  std::map<std::pair<int, int64_t>, std::vector<std::optional<UpdateReport>>> shards_;
  // Why the run cannot go on. A loss that is not finite says more than the gradients that it spoiled.
  std::string bad_loss_, bad_gradient_;
  size_t ended_ = 0;
  // A drain. Every worker that takes microbatches in is asked to hold and to say what it has taken in; the window that
  // the latest of them is in is the last.
  enum class Drain { None, Holding, Limited } drain_ = Drain::None;
  std::vector<bool> holds_;  // [worker]: has answered, or has nothing to take in
  int64_t admitted_ = 0;     // by those that have answered
  int64_t limit_;
  bool interrupted_ = false;
  bool told_ = false;  // where an interrupted segment drains
};

}  // namespace gyre
