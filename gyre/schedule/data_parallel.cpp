#include "gyre/schedule/data_parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/schedule/limits.h"

namespace gyre {
namespace {

void check_sizes(const Schedule& schedule, int replicas, const OptionNames& names) {
  int64_t actions = 1;
  for (const Program& program : schedule.programs) {
    actions += std::ssize(program.prologue) + std::ssize(program.period);
  }
  // Of the largest size, so many replicas fit.
  const auto check = [&](const char* what, int64_t of_one, int64_t most) {
    if (replicas >= 1 && of_one <= most / replicas) return;
    throw InputError(fmt::format(
        "schedule {}: {} is {}, and a replica has {} {}, of which there may be {}; give {} to {}", schedule.name,
        names.replicas, replicas, of_one, what, most, 1, std::max<int64_t>(1, most / of_one)));
  };
  check("workers", schedule.workers, kMostStages);
  check("pipelines", schedule.pipelines, kMostStages);
  check("microbatches in a repetition", schedule.shift, kMostWindow);
  check("actions in its programs", actions, kMostActions);
}

// Pipelines that adopt no version: each of their stages changes with its owner, beside it.
std::vector<int> pipelines_that_change_at_once(const Schedule& schedule) {
  std::vector<bool> adopts(static_cast<size_t>(schedule.pipelines));
  for (const Program& program : schedule.programs) {
    for (const auto* actions : {&program.prologue, &program.period}) {
      for (const Action& action : *actions) {
        if (action.kind == ActionKind::Adopt) adopts[static_cast<size_t>(action.pipeline)] = true;
      }
    }
  }
  std::vector<int> pipelines;
  for (int pipeline = 0; pipeline < schedule.pipelines; ++pipeline) {
    if (!adopts[static_cast<size_t>(pipeline)]) pipelines.push_back(pipeline);
  }
  return pipelines;
}

// Writes the programs of one replica.
class Replica {
 public:
  Replica(int replicas, int number, const std::vector<int>& change_at_once)
      : replicas_(replicas), number_(number), change_at_once_(change_at_once) {}

  Program program(const Program& original) const { return {actions(original.prologue), actions(original.period)}; }

 private:
  std::vector<Action> actions(const std::vector<Action>& originals) const {
    std::vector<Action> actions;
    actions.reserve(originals.size());
    for (const Action& original : originals) {
      if (original.kind != ActionKind::Update || number_ == 0) {
        actions.push_back(renumbered(original));
        continue;
      }
      for (const int pipeline : change_at_once_) {
        actions.push_back(renumbered({ActionKind::Adopt, pipeline, original.stage, original.microbatch}));
      }
    }
    return actions;
  }

  Action renumbered(Action action) const {
    action.pipeline = action.pipeline * replicas_ + number_;
    if (!action.is_per_window()) action.microbatch = action.microbatch * replicas_ + number_;
    return action;
  }

  int replicas_, number_;
  const std::vector<int>& change_at_once_;  // of the original's pipelines
};

}  // namespace

Schedule replicated(Schedule schedule, int replicas, const OptionNames& names) {
  if (replicas == 1) return schedule;
  check_sizes(schedule, replicas, names);
  Schedule all;
  all.name = schedule.name;
  all.stages = schedule.stages;
  all.pipelines = schedule.pipelines * replicas;
  all.window = schedule.window * replicas;
  all.shift = schedule.shift * replicas;
  all.forward_only = schedule.forward_only;
  all.weights = schedule.weights;
  all.owner = schedule.owner;
  all.workers = 0;
  all.placement.resize(static_cast<size_t>(all.pipelines));
  const std::vector<int> change_at_once = pipelines_that_change_at_once(schedule);
  for (int number = 0; number < replicas; ++number) {
    const Replica replica(replicas, number, change_at_once);
    // A worker that does nothing but update has nothing to do in the others: they go without it.
    std::vector<int> worker_of(static_cast<size_t>(schedule.workers));
    for (int worker = 0; worker < schedule.workers; ++worker) {
      Program program = replica.program(schedule.programs[worker]);
      if (number > 0 && program.prologue.empty() && program.period.empty()) continue;
      worker_of[static_cast<size_t>(worker)] = all.workers++;
      all.programs.push_back(std::move(program));
    }
    for (int pipeline = 0; pipeline < schedule.pipelines; ++pipeline) {
      auto& placement =
          all.placement[static_cast<size_t>(pipeline) * static_cast<size_t>(replicas) + static_cast<size_t>(number)];
      for (const int worker : schedule.placement[pipeline]) {
        placement.push_back(worker_of[static_cast<size_t>(worker)]);
      }
    }
  }
  return all;
}

}  // namespace gyre
