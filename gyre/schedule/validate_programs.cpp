// Checks that the programs, as written, can go on forever: what one repetition of the periods does for each stage, and
// the numbers of its actions.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "gyre/schedule/by_kind.h"
#include "gyre/schedule/validate_checks.h"

namespace gyre {
namespace {

class ProgramChecks {
 public:
  explicit ProgramChecks(const Schedule& schedule) : schedule_(schedule), counts_(schedule) {}

  void run() {
    check_ranges();
    count_period();
    for (int stage = 0; stage < schedule_.stages; ++stage) {
      for (int pipeline = 0; pipeline < schedule_.pipelines; ++pipeline) check_balance(pipeline, stage);
      check_updates(stage);
    }
    check_adopts();
    check_numbers();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { fail_validation(schedule_, what); }
  std::string text(const Action& action) const { return to_string(action, schedule_.pipelines); }

  void check_ranges() const {
    for (int worker = 0; worker < schedule_.workers; ++worker) {
      const Program& program = schedule_.programs[worker];
      for (const Action& action : program.prologue) check_range(worker, action);
      for (const Action& action : program.period) check_range(worker, action);
    }
  }

  void check_range(int worker, const Action& action) const {
    if (action.stage >= schedule_.stages || action.pipeline >= schedule_.pipelines) {
      fail(fmt::format("{} on worker {}: there is no such stage or pipeline", text(action), worker));
    }
    if (action.kind == ActionKind::Update && action.pipeline >= schedule_.shards()) {
      fail(
          fmt::format("{} on worker {}: an update is of all pipelines; it is written under its shard's number, and "
                      "there {} {}",
                      text(action), worker, schedule_.shards() == 1 ? "is" : "are", schedule_.shards()));
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
    const int64_t per_pipeline = schedule_.shift / schedule_.pipelines;
    const int64_t expected = schedule_.forward_only ? 0 : per_pipeline;
    const auto count = [&](ActionKind kind) { return counts_.of(kind, pipeline, stage); };
    const int64_t forwards = count(ActionKind::Forward), backwards = count(ActionKind::Backward),
                  inputs = count(ActionKind::BackwardInput), weights = count(ActionKind::BackwardWeights);
    if (forwards == per_pipeline && backwards + inputs == expected && inputs == weights) return;
    fail(
        fmt::format("the period of worker {} has for stage {} of pipeline {}: {} F, {} B, {} I, {} W; {} microbatches "
                    "need {} F and {} B (or I and W), or activations grow without bound",
                    schedule_.worker_of(pipeline, stage), stage, pipeline, forwards, backwards, inputs, weights,
                    per_pipeline, per_pipeline, expected));
  }

  void check_updates(int stage) const {
    const int64_t expected = schedule_.forward_only ? 0 : schedule_.shift / schedule_.window;
    for (int shard = 0; shard < schedule_.shards(); ++shard) {
      const int64_t updates = counts_.of(ActionKind::Update, shard, stage);
      if (updates == expected) continue;
      const std::string which = schedule_.shards() == 1 ? "" : fmt::format("shard {} of ", shard);
      fail(fmt::format("the periods have {} updates of {}stage {}, and {} microbatches in windows of {} need {}",
                       updates, which, stage, schedule_.shift, schedule_.window, expected));
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
          check_all_adopted(pipeline, stage);
        } else {
          check_beside_owner(pipeline, stage);
        }
      }
    }
  }

  void check_all_adopted(int pipeline, int stage) const {
    const int64_t updates = schedule_.shift / schedule_.window;
    const int64_t adoptions = counts_.of(ActionKind::Adopt, pipeline, stage);
    if (adoptions == updates) return;
    fail(fmt::format("the period of worker {} has {} A of stage {} of pipeline {}, and {} updates are made of it",
                     schedule_.worker_of(pipeline, stage), adoptions, stage, pipeline, updates));
  }

  void check_beside_owner(int pipeline, int stage) const {
    if (schedule_.shards() > 1) {
      fail(fmt::format("pipeline {} has no A; where updates are in shards, every one is adopted", pipeline));
    }
    const int worker = schedule_.worker_of(pipeline, stage), owner = schedule_.owner[0][stage];
    if (worker == owner) return;
    fail(
        fmt::format("pipeline {} has no A, and its stage {} is on worker {}, not on {}, which updates it; where "
                    "they differ, every update is adopted",
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
    for (int worker = 0; worker < schedule_.workers; ++worker) {
      for (const auto* actions : {&schedule_.programs[worker].prologue, &schedule_.programs[worker].period}) {
        for (const Action& action : *actions) {
          const int64_t step = action.is_per_window() ? schedule_.shift / schedule_.window : schedule_.shift;
          const int64_t late = before.of(common(action), action.pipeline, action.stage);  // in repetitions, at most
          const int64_t end = (late + 1) * step;
          if (action.microbatch < end) continue;
          fail(
              fmt::format("{} on worker {}: its number leaves others out; with {} of its kind before the period, which "
                          "repeats after {}, numbers are below {}",
                          text(action), worker, late, step, end));
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
  ActionCounts counts_;  // in the periods
};

}  // namespace

void check_programs(const Schedule& schedule) {
  ProgramChecks(schedule).run();
}

}  // namespace gyre
