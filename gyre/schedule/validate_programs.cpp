// Checks that the programs, as written, can go on forever: the place of each action, what one repetition of the periods
// does for each stage, and the numbers of its actions.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "gyre/schedule/by_kind.h"
#include "gyre/schedule/limits.h"
#include "gyre/schedule/validate_checks.h"

namespace gyre {
namespace {

class ProgramChecks {
 public:
  explicit ProgramChecks(const Schedule& schedule)
      : schedule_(schedule), updates_(schedule.shift / schedule.window), counts_(schedule) {}

  void run() {
    check_actions();
    count_period();
    for (int stage = 0; stage < schedule_.stages; ++stage) {
      for (int pipeline = 0; pipeline < schedule_.pipelines; ++pipeline) check_balance(pipeline, stage);
      check_updates(stage);
    }
    check_adopts();
    check_numbers();
  }

 private:
  [[noreturn]] void fail(int worker, const Action& action, const std::string& what) const {
    fail_validation(schedule_, worker, action, what);
  }

  void check_actions() const {
    for (int worker = 0; worker < schedule_.workers; ++worker) {
      const Program& program = schedule_.programs[worker];
      for (const auto* actions : {&program.prologue, &program.period}) {
        for (const Action& action : *actions) {
          check_range(worker, action);
          check_place(worker, action);
        }
      }
    }
  }

  void check_range(int worker, const Action& action) const {
    if (action.stage < 0 || action.stage >= schedule_.stages || action.pipeline < 0 ||
        action.pipeline >= schedule_.pipelines) {
      fail(worker, action, "there is no such stage or pipeline");
    }
    if (action.microbatch < 0 || action.microbatch > kMostMicrobatch) {
      fail(worker, action, fmt::format("the number must be 0 to {}", kMostMicrobatch));
    }
    if (action.kind == ActionKind::Update && action.pipeline >= schedule_.shards()) {
      fail(worker, action,
           fmt::format("an update is of all pipelines; it is written under its shard's number, and there {} {}",
                       schedule_.shards() == 1 ? "is" : "are", schedule_.shards()));
    }
  }

  // What holds here holds in every repetition, since the shift is a multiple of the number of pipelines.
  void check_place(int worker, const Action& action) const {
    const int place = schedule_.worker_of(action);
    if (place != worker) {
      const bool update = action.kind == ActionKind::Update;
      fail(worker, action, fmt::format("the {} says worker {}", update ? "owner line" : "placement", place));
    }
    if (schedule_.forward_only && action.kind != ActionKind::Forward) {
      fail(worker, action, "a forward-only schedule has forwards alone");
    }
    if (!action.is_per_window() && schedule_.pipeline_of(action.microbatch) != action.pipeline) {
      fail(worker, action,
           fmt::format("microbatch {} is pipeline {}'s", action.microbatch, schedule_.pipeline_of(action.microbatch)));
    }
  }

  void count_period() {
    for (const Program& program : schedule_.programs) {
      for (const Action& action : program.period) counts_.add(action.kind, action.pipeline, action.stage);
    }
  }

  // Every repetition must do for each stage what `shift` microbatches need, neither more (something would be done
  // twice) nor less (activations would grow without bound, or gradients be lost).
  void check_balance(int pipeline, int stage) const {
    const int64_t expected = schedule_.shift / schedule_.pipelines;
    const auto count = [&](ActionKind kind) { return counts_.of(kind, pipeline, stage); };
    if (count(ActionKind::Forward) != expected) check_each_once(schedule_, ActionKind::Forward, pipeline, stage);
    if (schedule_.forward_only) return;
    const int64_t inputs = count(ActionKind::BackwardInput);
    if (count(ActionKind::Backward) + inputs != expected || inputs != count(ActionKind::BackwardWeights)) {
      check_each_once(schedule_, ActionKind::Backward, pipeline, stage);
    }
  }

  void check_updates(int stage) const {
    if (schedule_.forward_only) return;
    for (int shard = 0; shard < schedule_.shards(); ++shard) {
      if (counts_.of(ActionKind::Update, shard, stage) == updates_) continue;
      check_each_once(schedule_, ActionKind::Update, shard, stage);
    }
  }

  // A pipeline's versions change either at the updates or at adoptions. A pipeline with adoptions must adopt every
  // update of every stage. One without changes with the owners, so each of its stages must be on the worker of its only
  // owner.
  void check_adopts() const {
    if (schedule_.forward_only) return;
    const std::vector<bool> adopts = adopting_pipelines(schedule_);
    for (int pipeline = 0; pipeline < schedule_.pipelines; ++pipeline) {
      for (int stage = 0; stage < schedule_.stages; ++stage) {
        if (adopts[static_cast<size_t>(pipeline)]) {
          if (counts_.of(ActionKind::Adopt, pipeline, stage) == updates_) continue;
          check_each_once(schedule_, ActionKind::Adopt, pipeline, stage);
        } else {
          check_beside_owner(pipeline, stage);
        }
      }
    }
  }

  void check_beside_owner(int pipeline, int stage) const {
    const Action adopt{ActionKind::Adopt, pipeline, stage, 0};
    const int worker = schedule_.worker_of(pipeline, stage), owner = schedule_.owner[0][stage];
    if (schedule_.shards() > 1) {
      fail(worker, adopt,
           fmt::format("is missing; pipeline {} has no A, and where updates are in shards, every one is adopted",
                       pipeline));
    }
    if (worker == owner) return;
    fail(worker, adopt,
         fmt::format("is missing; pipeline {} has no A, and its stage {} is on worker {}, not on {}, which updates it; "
                     "where they differ, every update is adopted",
                     pipeline, stage, worker, owner));
  }

  // Each number must occur once. The period has every remainder modulo `step` once, so its numbers can begin at most as
  // many repetitions late as the prologues have actions of the kind. With a higher number, a worker would wait forever
  // for those left out.
  void check_numbers() const {
    ActionCounts before(schedule_);
    for (const Program& program : schedule_.programs) {
      for (const Action& action : program.prologue) before.add(common(action), action.pipeline, action.stage);
    }
    for (const Program& program : schedule_.programs) {
      for (const auto* actions : {&program.prologue, &program.period}) {
        for (const Action& action : *actions) {
          const int64_t step = action.is_per_window() ? updates_ : schedule_.shift;
          const int64_t late = before.of(common(action), action.pipeline, action.stage);  // in repetitions, at most
          if (action.microbatch < (late + 1) * step) continue;
          check_each_once(schedule_, common(action), action.pipeline, action.stage);
        }
      }
    }
  }

  // Counts all kinds of backward as one.
  static ActionKind common(const Action& action) {
    const bool half = action.kind == ActionKind::BackwardInput || action.kind == ActionKind::BackwardWeights;
    return half ? ActionKind::Backward : static_cast<ActionKind>(action.kind);
  }

  const Schedule& schedule_;
  int64_t updates_;      // of a stage in a repetition
  ActionCounts counts_;  // in the periods
};

}  // namespace

void check_programs(const Schedule& schedule) {
  ProgramChecks(schedule).run();
}

}  // namespace gyre
