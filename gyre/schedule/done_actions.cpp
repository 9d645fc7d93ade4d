#include "gyre/schedule/done_actions.h"

#include <algorithm>

namespace gyre {

void DoneActions::add(const Action& action) {
  done_.at(action.kind, action.pipeline, action.stage).add(index(action));
  const auto stage = static_cast<size_t>(action.stage);
  if (action.kind == ActionKind::Backward || action.kind == ActionKind::BackwardWeights) {
    ++gradients_.at(stage, action.microbatch / schedule_.window).count;
  } else if (action.kind == ActionKind::Update) {
    if (++gradients_.at(stage, action.microbatch).updates == schedule_.shards()) {
      gradients_.erase(stage, action.microbatch);
    }
  }
}

bool DoneActions::has_backward(int pipeline, int stage, int64_t microbatch) const {
  return contains({ActionKind::Backward, pipeline, stage, microbatch}) ||
         contains({ActionKind::BackwardWeights, pipeline, stage, microbatch});
}

int64_t DoneActions::next(ActionKind kind, int pipeline, int stage) const {
  const DoneSet* found = done_.find(kind, pipeline, stage);
  return found == nullptr ? 0 : found->next();
}

std::optional<Action> DoneActions::missing(const Action& action) const {
  const auto [kind, pipeline, stage, m] = action;
  const int last = schedule_.stages - 1;
  const auto unless_done = [&](const Action& needed) {
    return contains(needed) ? std::nullopt : std::optional(needed);
  };
  switch (kind) {
    case ActionKind::Forward:
      return stage == 0 ? std::nullopt : unless_done({ActionKind::Forward, pipeline, stage - 1, m});
    case ActionKind::Backward:
    case ActionKind::BackwardInput:
      if (const auto forward = unless_done({ActionKind::Forward, pipeline, stage, m})) return forward;
      if (stage == last || contains({ActionKind::BackwardInput, pipeline, stage + 1, m})) return std::nullopt;
      return unless_done({ActionKind::Backward, pipeline, stage + 1, m});
    case ActionKind::BackwardWeights:
      return unless_done({ActionKind::BackwardInput, pipeline, stage, m});
    case ActionKind::Update:
      // A first stage that shares a weight with the last one needs the last one's gradients too.
      if (schedule_.tied && stage == 0 && last > 0) {
        if (const auto backward = missing_backward(last, m)) return backward;
      }
      return has_all_gradients(stage, m) ? std::nullopt : missing_backward(stage, m);
    case ActionKind::Adopt:
      for (int shard = 0; shard < schedule_.shards(); ++shard) {
        if (const auto update = unless_done({ActionKind::Update, shard, stage, m})) return update;
      }
      return std::nullopt;
  }
  return std::nullopt;
}

// The first backward of the window that the stage has not done. Looks at what follows those that each pipeline has done
// from the first on, since a window may be long.
std::optional<Action> DoneActions::missing_backward(int stage, int64_t window) const {
  const int64_t begin = window * schedule_.window, end = begin + schedule_.window;
  std::optional<Action> first;
  for (int pipeline = 0; pipeline < schedule_.pipelines; ++pipeline) {
    const int64_t before = (begin - pipeline + schedule_.pipelines - 1) / schedule_.pipelines;  // in earlier windows
    const int64_t done =
        std::max(next(ActionKind::Backward, pipeline, stage), next(ActionKind::BackwardWeights, pipeline, stage));
    int64_t m = std::max(before, done) * schedule_.pipelines + pipeline;
    while (m < end && has_backward(pipeline, stage, m)) m += schedule_.pipelines;
    if (m < end && (!first || m < first->microbatch)) first = Action{ActionKind::Backward, pipeline, stage, m};
  }
  return first;
}

bool DoneActions::has_all_gradients(int stage, int64_t window) const {
  const Gradients* gradients = gradients_.find(static_cast<size_t>(stage), window);
  return gradients != nullptr && gradients->count == schedule_.window;
}

}  // namespace gyre
