// The conductor: the part of a segment that belongs to no worker. It receives the workers' reports, passes the numbers
// in them on to the observer, ends a run that diverges, decides where the segment drains, adds up what was observed,
// and compares it with the schedule's analysis. It acts only when attend() is called.
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
  std::vector<int64_t> skipped_in_a_row;  // [stage]: the latest updates in a row with gradients not finite
};

class Conductor {
 public:
  // All arguments must outlive it.
  Conductor(const PipelinePlan& plan, ConductorState& state, const Segment& segment, Transport& transport,
            SegmentObserver& observer);

  // Handles every report that has come, and answers. Throws Divergence if more than max_skipped updates in a row had
  // gradients that are not finite or, where max_skipped is 0, if a loss is not finite.
  void attend();
  // Whether every worker's program has ended.
  bool finished() const { return ended_ == links_.reports.size(); }
  // The report of the whole segment, once it has finished. Throws RunError if delays or mismatches differ from the
  // schedule's analysis.
  SegmentReport report(double seconds) const;

 private:
  void hear_all();
  void hear(size_t worker, Report report);
  void hear(const LossReport& report);
  void count_loss(int64_t window);
  int64_t first_bad_window() const;
  void end_if_diverged();
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
  std::vector<FinalReport> seen_;              // [worker]
  std::vector<int64_t> updates_;               // [stage]: reported
  std::vector<std::vector<int64_t>> skipped_;  // [stage]: windows whose update was left out
  // Updates some of whose shards have not reported yet: by stage and window, [shard].
  std::map<std::pair<int, int64_t>, std::vector<std::optional<UpdateReport>>> shards_;
  // Why the run cannot go on. Of what is found in one window, a loss that is not finite says more than the gradients it
  // spoils. The run ends when everything up to the first such window is known, and no later one is passed on: so it
  // does not matter which worker was heard first.
  struct Fault {
    int64_t window = 0;
    int64_t number = 0;  // of the microbatch, or the stage
    std::string what;
    bool is_before(const Fault& other) const {
      return std::pair(window, number) < std::pair(other.window, other.number);
    }
  };
  std::optional<Fault> bad_loss_, bad_gradient_;  // the first of each
  std::map<int64_t, int64_t> losses_;             // reported, by window, from the first on that misses some
  int64_t whole_windows_ = 0;                     // windows before that one
  size_t ended_ = 0;
  // State of a drain. Every worker that takes in microbatches is asked to hold and to report what it has taken in; the
  // last window is the one that the furthest of them is in.
  enum class Drain { None, Holding, Limited } drain_ = Drain::None;
  std::vector<bool> holds_;  // [worker]: has answered or ended, or takes nothing in
  int64_t admitted_ = 0;     // maximum over those that have answered
  int64_t limit_;
  bool interrupted_ = false;
  bool told_ = false;  // on_drain() has been called
};

}  // namespace gyre
