#include "gyre/schedule/data_parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/schedule/limits.h"
#include "gyre/schedule/worker_order.h"

namespace gyre {
namespace {

void check_sizes(const Schedule& schedule, int replicas, const OptionNames& names) {
  int64_t actions = 1;
  for (const Program& program : schedule.programs) {
    actions += std::ssize(program.prologue) + std::ssize(program.period);
  }
  // Throws if `replicas` times the size of one replica exceeds the limit.
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

// Writes the programs of one replica.
class Replica {
 public:
  Replica(int replicas, int number, bool shard_optimizer, const std::vector<bool>& adopts)
      : replicas_(replicas), number_(number), shard_optimizer_(shard_optimizer), adopts_(adopts) {}

  Program program(const Program& original) const { return {actions(original.prologue), actions(original.period)}; }

 private:
  std::vector<Action> actions(const std::vector<Action>& originals) const {
    std::vector<Action> actions;
    actions.reserve(originals.size());
    for (const Action& original : originals) {
      const bool update = original.kind == ActionKind::Update;
      if (!update || updates()) actions.push_back(renumbered(original));
      if (!update || changes_with_owner()) continue;
      for (int pipeline = 0; pipeline < std::ssize(adopts_); ++pipeline) {
        if (adopts_[static_cast<size_t>(pipeline)]) continue;
        actions.push_back(renumbered({ActionKind::Adopt, pipeline, original.stage, original.microbatch}));
      }
    }
    return actions;
  }

  bool updates() const { return shard_optimizer_ || number_ == 0; }
  // Whether this replica's weights change at the update, as in the original, so that no adoption is needed.
  bool changes_with_owner() const { return !shard_optimizer_ && number_ == 0; }

  Action renumbered(Action action) const {
    if (action.kind != ActionKind::Update || shard_optimizer_) action.pipeline = action.pipeline * replicas_ + number_;
    if (!action.is_per_window()) action.microbatch = action.microbatch * replicas_ + number_;
    return action;
  }

  int replicas_, number_;
  bool shard_optimizer_;
  const std::vector<bool>& adopts_;  // [pipeline of the original]: it has adoptions already
};

}  // namespace

Schedule replicated(Schedule schedule, int replicas, bool shard_optimizer, const OptionNames& names) {
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
  all.tied = schedule.tied;
  all.global_norm = schedule.global_norm;
  all.workers = 0;
  all.placement.resize(static_cast<size_t>(all.pipelines));
  if (shard_optimizer) all.owner.resize(schedule.owner.size() * static_cast<size_t>(replicas));
  const std::vector<bool> adopts = adopting_pipelines(schedule);
  for (int number = 0; number < replicas; ++number) {
    const Replica replica(replicas, number, shard_optimizer, adopts);
    // A worker that only makes updates has an empty program in replicas without updates, so it is left out there.
    std::vector<int> worker_of(static_cast<size_t>(schedule.workers));
    for (int worker = 0; worker < schedule.workers; ++worker) {
      Program program = replica.program(schedule.programs[worker]);
      if (number > 0 && program.prologue.empty() && program.period.empty()) continue;
      worker_of[static_cast<size_t>(worker)] = all.workers++;
      all.programs.push_back(std::move(program));
    }
    const auto place = [&](const std::vector<std::vector<int>>& originals, std::vector<std::vector<int>>& copies) {
      for (size_t original = 0; original < originals.size(); ++original) {
        auto& copy = copies[original * static_cast<size_t>(replicas) + static_cast<size_t>(number)];
        for (const int worker : originals[original]) copy.push_back(worker_of[static_cast<size_t>(worker)]);
      }
    };
    place(schedule.placement, all.placement);
    if (shard_optimizer) place(schedule.owner, all.owner);
  }
  if (!shard_optimizer) all.owner = schedule.owner;
  return all;
}

Schedule replicated(Schedule schedule, const ScheduleOptions& options) {
  Schedule all = replicated(std::move(schedule), options.replicas, options.shard_optimizer, options.names);
  return options.by_stages ? numbered_by_stages(std::move(all), options.replicas) : all;
}

}  // namespace gyre
