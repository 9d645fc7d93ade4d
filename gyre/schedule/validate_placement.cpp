// Checks that the sizes of a schedule are consistent, that every worker it names exists, and that the shards of a stage
// have different owners.
#include <fmt/format.h>

#include <set>
#include <vector>

#include "gyre/schedule/validate_checks.h"

namespace gyre {
namespace {

void check_sizes(const Schedule& schedule) {
  if (schedule.stages < 1 || schedule.workers < 1 || schedule.pipelines < 1) {
    fail_validation(schedule, "stages, workers and pipelines must be at least 1");
  }
  if (schedule.window < 1 || schedule.shift < 1 || schedule.shift % schedule.window != 0 ||
      schedule.shift % schedule.pipelines != 0) {
    fail_validation(schedule, "shift must be a multiple of the window and of the number of pipelines");
  }
  if (schedule.placement.size() != static_cast<size_t>(schedule.pipelines) || schedule.owner.empty() ||
      schedule.programs.size() != static_cast<size_t>(schedule.workers)) {
    fail_validation(schedule, "placement, owner and programs must fit the numbers of pipelines, stages and workers");
  }
  if (schedule.owner.size() > schedule.placement.size()) {
    fail_validation(schedule, fmt::format("updates are in {} shards, and there are {} pipelines; give at most an owner "
                                          "line for each",
                                          schedule.owner.size(), schedule.placement.size()));
  }
}

// One line of the placement, or of the owners: a worker for each stage.
void check_workers(const Schedule& schedule, const std::vector<int>& workers) {
  if (workers.size() != static_cast<size_t>(schedule.stages)) {
    fail_validation(schedule, "a placement or owner line must have one worker for each stage");
  }
  for (const int worker : workers) {
    if (worker < 0 || worker >= schedule.workers) {
      fail_validation(schedule, fmt::format("a placement names worker {}, which is not there", worker));
    }
  }
}

void check_shards(const Schedule& schedule) {
  for (int stage = 0; stage < schedule.stages; ++stage) {
    std::set<int> owners;
    for (const auto& shard : schedule.owner) {
      if (!owners.insert(shard[stage]).second) {
        fail_validation(schedule, fmt::format("worker {} owns two shards of stage {}; give each to a worker of its own",
                                              shard[stage], stage));
      }
    }
  }
}

}  // namespace

void check_placement(const Schedule& schedule) {
  check_sizes(schedule);
  for (const auto& workers : schedule.placement) check_workers(schedule, workers);
  for (const auto& workers : schedule.owner) check_workers(schedule, workers);
  check_shards(schedule);
}

}  // namespace gyre
