// Forward only: evaluation on the workers and replicas of a training schedule. One pipeline keeps all of its workers
// busy, since a forward waits only for the forward at the stage before. So each set of workers gets one pipeline: under
// data parallelism the first of every replica, which are the training schedule's first pipelines.
#include <algorithm>

#include "gyre/schedule/builder_parts.h"
#include "gyre/schedule/reduction_chains.h"

namespace gyre {
namespace {

// The worker's program for the pipeline. A microbatch advances one stage per moment: when the worker's first stage runs
// the pipeline's n-th microbatch, its stage s runs the one that is s - first earlier.
Program write_program(const Schedule& schedule, int pipeline, int worker) {
  std::vector<int> hosted;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    if (schedule.placement[pipeline][stage] == worker) hosted.push_back(stage);
  }
  Program program;
  const int64_t lag = hosted.back() - hosted.front();
  for (int64_t moment = 0; moment <= lag; ++moment) {
    auto& actions = moment < lag ? program.prologue : program.period;
    for (auto stage = hosted.rbegin(); stage != hosted.rend(); ++stage) {
      const int64_t n = moment - (*stage - hosted.front());
      if (n >= 0) actions.push_back(forward(*stage, n * schedule.pipelines + pipeline, pipeline));
    }
  }
  return program;
}

}  // namespace

Schedule build_forward_only(const Schedule& training) {
  Schedule schedule;
  schedule.name = "forward-only";
  schedule.forward_only = true;
  schedule.tied = training.tied;
  schedule.stages = training.stages;
  schedule.workers = training.workers;
  const std::vector<int> beside = pipelines_side_by_side(training);
  schedule.pipelines = static_cast<int>(std::count(beside.begin(), beside.end(), 0));
  schedule.shift = schedule.pipelines;
  schedule.placement.assign(training.placement.begin(), training.placement.begin() + schedule.pipelines);
  schedule.owner = training.owner;
  schedule.programs.resize(schedule.workers);
  for (int pipeline = 0; pipeline < schedule.pipelines; ++pipeline) {
    for (const int worker : schedule.placement[pipeline]) {
      Program& program = schedule.programs[worker];
      if (program.period.empty()) program = write_program(schedule, pipeline, worker);
    }
  }
  return schedule;
}

}  // namespace gyre
