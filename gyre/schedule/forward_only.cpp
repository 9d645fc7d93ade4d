// Forward only: evaluation over the workers and the first replicas of a training schedule. One pipeline keeps them all
// busy, since a forward has nothing to wait for but the forward before it.
#include <algorithm>

#include "gyre/schedule/builder_parts.h"

namespace gyre {

Schedule build_forward_only(const Schedule& training) {
  Schedule schedule;
  schedule.name = "forward-only";
  schedule.forward_only = true;
  schedule.stages = training.stages;
  schedule.workers = training.workers;
  schedule.placement = {training.placement[0]};
  schedule.owner = training.owner;
  schedule.programs.resize(schedule.workers);
  for (int worker = 0; worker < schedule.workers; ++worker) {
    std::vector<int> hosted;
    for (int stage = 0; stage < schedule.stages; ++stage) {
      if (schedule.placement[0][stage] == worker) hosted.push_back(stage);
    }
    if (hosted.empty()) continue;
    // At one moment a microbatch is at one stage: when the worker's first stage runs microbatch m, its stage s runs
    // the one that came s - first earlier.
    Program& program = schedule.programs[worker];
    const int64_t lag = hosted.back() - hosted.front();
    for (int64_t moment = 0; moment <= lag; ++moment) {
      auto& actions = moment < lag ? program.prologue : program.period;
      for (auto stage = hosted.rbegin(); stage != hosted.rend(); ++stage) {
        const int64_t microbatch = moment - (*stage - hosted.front());
        if (microbatch >= 0) actions.push_back(forward(*stage, microbatch));
      }
    }
  }
  return schedule;
}

}  // namespace gyre
