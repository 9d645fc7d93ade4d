// Tracks which actions of a schedule are done, and knows what an action needs before it: the dependencies between
// actions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>

#include "gyre/schedule/by_kind.h"
#include "gyre/schedule/ring_map.h"
#include "gyre/schedule/schedule.h"

namespace gyre {

// The numbers of an ascending series that are done: all below next_, and those in early_, which few schedules need.
class DoneSet {
 public:
  bool contains(int64_t number) const { return number < next_ || (early_ && early_->count(number) > 0); }
  void add(int64_t number) {
    if (number != next_) {
      if (!early_) early_ = std::make_unique<std::set<int64_t>>();
      early_->insert(number);
      return;
    }
    for (++next_; early_ && early_->erase(next_) > 0; ++next_) {
    }
  }
  int64_t next() const { return next_; }  // the first that is not done

 private:
  int64_t next_ = 0;
  std::unique_ptr<std::set<int64_t>> early_;
};

class DoneActions {
 public:
  explicit DoneActions(const Schedule& schedule)
      : schedule_(schedule), done_(schedule), gradients_(static_cast<size_t>(schedule.stages)) {}

  void add(const Action& action);
  bool contains(const Action& action) const {
    const DoneSet* found = done_.find(action.kind, action.pipeline, action.stage);
    return found != nullptr && found->contains(index(action));
  }
  // Whether the microbatch's weight gradients are done, by a whole backward or by its weight half.
  bool has_backward(int pipeline, int stage, int64_t microbatch) const;
  // The first number that is not done among the replica's actions of the kind: a window's number, or a microbatch's
  // index within the pipeline.
  int64_t next(ActionKind kind, int pipeline, int stage) const;

  // What the action still waits for, if anything.
  std::optional<Action> missing(const Action& action) const;

 private:
  // The gradients of a window at a stage.
  struct Gradients {
    int64_t count = 0;  // computed so far
    int updates = 0;    // shards whose update has used them
  };

  std::optional<Action> missing_backward(int stage, int64_t window) const;
  bool has_all_gradients(int stage, int64_t window) const;
  // Microbatch numbers of one pipeline step by `pipelines`; done sets count them from 0.
  int64_t index(const Action& action) const {
    return action.is_per_window() ? action.microbatch : action.microbatch / schedule_.pipelines;
  }

  const Schedule& schedule_;
  ByKind<DoneSet> done_;
  mutable RingMap<Gradients> gradients_;  // by stage and window
};

}  // namespace gyre
