#include "gyre/runtime/published_status.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gyre {

std::string describe_needs(const Schedule& schedule, const Action& action) {
  const bool is_last = action.stage + 1 == schedule.stages;
  const auto from = [&](ActionKind kind, int stage) {
    return fmt::format("{} from worker {}",
                       to_string(Action{kind, action.pipeline, stage, action.microbatch}, schedule.pipelines),
                       schedule.worker_of(action.pipeline, stage));
  };
  switch (action.kind) {
    case ActionKind::Forward:
      return action.stage == 0 ? "room to send its output"
                               : "the activation of " + from(ActionKind::Forward, action.stage - 1) +
                                     (schedule.tied && is_last ? ", or the tied weight" : "");
    case ActionKind::Backward:
    case ActionKind::BackwardInput:
      return is_last ? "room to report the loss" : "the gradient of " + from(ActionKind::Backward, action.stage + 1);
    case ActionKind::Update:
      return "the gradients of its replicas, or the norms of other owners";
    case ActionKind::Adopt: {
      const std::vector<int> owners = owners_of(schedule, action.stage);
      return fmt::format("update {} of stage {} by worker{} {}", action.microbatch, action.stage,
                         owners.size() == 1 ? "" : "s", fmt::join(owners, ", "));
    }
    default:
      return "nothing";
  }
}

std::vector<int> owners_of(const Schedule& schedule, int stage) {
  std::vector<int> owners;
  for (const auto& shard : schedule.owner) owners.push_back(shard[stage]);
  return owners;
}

void PublishedStatus::set_action(const std::optional<Action>& action) {
  const std::lock_guard lock(mutex_);
  action_ = action;
}

void PublishedStatus::add_delay(int stage, int64_t delay) {
  const std::lock_guard lock(mutex_);
  WorkerStatus::Delays& seen = delays_[stage];
  seen.sum += static_cast<double>(delay);
  ++seen.gradients;
}

WorkerStatus PublishedStatus::read() const {
  WorkerStatus status;
  const std::lock_guard lock(mutex_);
  status.delays = delays_;
  if (!action_) return status;
  status.action = to_string(*action_, schedule_.pipelines);
  status.needs = describe_needs(schedule_, *action_);
  return status;
}

}  // namespace gyre
