// Delay analysis: which weight version every action reads, and which update applies its gradient. The runtime asserts
// the same numbers while it runs.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "gyre/schedule/replicas.h"
#include "gyre/schedule/schedule.h"

namespace gyre {

// Follows one worker's program action by action and returns the version (number of updates taken before, 0 = initial)
// of the weights of the action's (pipeline, stage). A replica's version advances at its Adopt actions or, if it has
// none, at the owner's Update. Memory is linear in the worker's replicas. `replicas` must outlive it; the schedule must
// be valid.
class VersionTracker {
 public:
  VersionTracker(const Schedule& schedule, const ReplicaNumbers& replicas, int worker);
  // The version that `action` finds; call once for each action in program order.
  int64_t track(const Action& action);

 private:
  size_t index(const Action& action) const { return replicas_.of(action.pipeline, action.stage) - first_; }

  const ReplicaNumbers& replicas_;
  int worker_;
  size_t first_;                   // the worker's first replica
  std::vector<int64_t> versions_;  // [index]
  std::vector<bool> adopts_;       // [index]: the version waits for an Adopt
};

// Delay of microbatch m whose forward read `version`: updates between that version and the one its gradient makes.
inline int64_t delay_of(const Schedule& schedule, int64_t microbatch, int64_t version) {
  return microbatch / schedule.window - version;
}

struct DelayAnalysis {
  std::vector<std::map<int64_t, int64_t>> delay;     // [stage]: delay -> number of microbatches
  std::vector<std::map<int64_t, int64_t>> mismatch;  // [stage], if backwards read the latest version
  int64_t max_delay = 0;
  int64_t max_mismatch = 0;
};

// Over the restriction to `microbatches`, all pipelines together. Time linear in actions, memory in microbatches in
// flight.
DelayAnalysis analyse_delays(const Schedule& schedule, int64_t microbatches);

// The longest delay and mismatch of each stage once the pipelines are full; mismatch as above.
struct LongestDelays {
  std::vector<int64_t> delay, mismatch;  // [stage]
};
LongestDelays longest_delays(const Schedule& schedule);
// How many updates ahead (Predict) or back (Corrected) each stage's weights are forecast: its longest delay or
// mismatch. 0 with other policies.
std::vector<int64_t> forecast_steps(const Schedule& schedule, WeightPolicy weights);
// The mean delay of each stage's microbatches once the pipelines are full.
std::vector<double> mean_delays(const Schedule& schedule);

}  // namespace gyre
