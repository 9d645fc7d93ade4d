#include "gyre/schedule/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gyre/core/error.h"

namespace gyre {
namespace {

// Which numbers of an ascending series are done: all below `next`, and those in `early`. Small while order is nearly
// kept.
class DoneSet {
 public:
  bool contains(int64_t number) const { return number < next_ || early_.count(number) > 0; }
  void add(int64_t number) {
    early_.insert(number);
    for (; early_.count(next_) > 0; ++next_) early_.erase(next_);
  }
  int64_t next() const { return next_; }  // the first that is not done

 private:
  int64_t next_ = 0;
  std::set<int64_t> early_;
};

// Executes a restriction in the order of its programs, each worker as far as it can go, and checks every action.
class Validation {
 public:
  Validation(const Schedule& schedule, int64_t microbatches) : schedule_(schedule), microbatches_(microbatches) {}

  void run() {
    check_placement();
    check_periods();
    for (int worker = 0; worker < schedule_.workers; ++worker) cursors_.emplace_back(schedule_, worker, microbatches_);
    bool finished = false;
    while (!finished) {
      bool progress = false;
      finished = true;
      for (int worker = 0; worker < schedule_.workers; ++worker) {
        while (cursors_[worker].peek() && try_perform(worker, *cursors_[worker].peek())) {
          cursors_[worker].advance();
          progress = true;
        }
        finished &= !cursors_[worker].peek();
      }
      if (!progress && !finished) fail_blocked();
    }
    check_complete();
  }

 private:
  using Key = std::tuple<ActionKind, int, int>;  // kind, pipeline, stage

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(fmt::format("schedule {}: {}", schedule_.name, what));
  }
  [[noreturn]] void fail(int worker, const Action& action, const std::string& what) const {
    fail(fmt::format("{} on worker {}: {}\n{}", text(action), worker, what, grid()));
  }
  std::string text(const Action& action) const { return to_string(action, schedule_.pipelines); }

  void check_placement() const {
    if (schedule_.stages < 1 || schedule_.workers < 1 || schedule_.pipelines < 1)
      fail("stages, workers and pipelines must be at least 1");
    if (schedule_.window < 1 || schedule_.shift < 1 || schedule_.shift % schedule_.window != 0 ||
        schedule_.shift % schedule_.pipelines != 0) {
      fail("shift must be a multiple of the window and of the number of pipelines");
    }
    const auto stages = static_cast<size_t>(schedule_.stages);
    if (schedule_.placement.size() != static_cast<size_t>(schedule_.pipelines) || schedule_.owner.size() != stages ||
        schedule_.programs.size() != static_cast<size_t>(schedule_.workers)) {
      fail("placement, owner and programs must fit the numbers of pipelines, stages and workers");
    }
    auto all = schedule_.placement;
    all.push_back(schedule_.owner);
    for (const auto& workers : all) {
      if (workers.size() != stages) fail("a placement names another number of stages");
      for (int worker : workers) {
        if (worker < 0 || worker >= schedule_.workers)
          fail(fmt::format("a placement names worker {}, which is not there", worker));
      }
    }
  }

  void check_range(int worker, const Action& action) const {
    if (action.stage >= schedule_.stages || action.pipeline >= schedule_.pipelines) {
      fail(fmt::format("{} on worker {}: there is no such stage or pipeline", text(action), worker));
    }
  }

  // Every repetition must do for each stage what `shift` microbatches need, neither more (something would be done
  // twice) nor less (activations would grow without bound, or gradients be lost).
  void check_periods() {
    std::map<Key, int64_t> counts;
    for (int worker = 0; worker < schedule_.workers; ++worker) {
      const Program& program = schedule_.programs[worker];
      for (const Action& action : program.prologue) check_range(worker, action);
      for (const Action& action : program.period) {
        check_range(worker, action);
        ++counts[{action.kind, action.pipeline, action.stage}];
      }
    }
    const int64_t per_pipeline = schedule_.shift / schedule_.pipelines;
    for (int stage = 0; stage < schedule_.stages; ++stage) {
      int64_t updates = 0;
      for (int pipeline = 0; pipeline < schedule_.pipelines; ++pipeline) {
        const auto count = [&](ActionKind kind) {
          const auto found = counts.find({kind, pipeline, stage});
          return found == counts.end() ? 0 : found->second;
        };
        updates += count(ActionKind::Update);
        const int64_t backwards = schedule_.forward_only ? 0 : per_pipeline;
        const bool balanced = count(ActionKind::Forward) == per_pipeline &&
                              count(ActionKind::Backward) + count(ActionKind::BackwardInput) == backwards &&
                              count(ActionKind::BackwardInput) == count(ActionKind::BackwardWeights);
        if (!balanced) {
          fail(fmt::format(
              "the period of worker {} has for stage {} of pipeline {}: {} F, {} B, {} I, {} W; {} microbatches need "
              "{} F and {} B (or I and W), or activations grow without bound",
              schedule_.worker_of(pipeline, stage), stage, pipeline, count(ActionKind::Forward),
              count(ActionKind::Backward), count(ActionKind::BackwardInput), count(ActionKind::BackwardWeights),
              per_pipeline, per_pipeline, backwards));
        }
      }
      const int64_t expected = schedule_.forward_only ? 0 : schedule_.shift / schedule_.window;
      if (updates != expected) {
        fail(fmt::format("the periods have {} updates of stage {}, and {} microbatches in windows of {} need {}",
                         updates, stage, schedule_.shift, schedule_.window, expected));
      }
    }
    check_adopts(counts);
  }

  // Versions change either at the updates or at adoptions; in a schedule that has adoptions every replica must adopt
  // every update, and one with several pipelines must have them.
  void check_adopts(const std::map<Key, int64_t>& counts) {
    adopts_ = schedule_.pipelines > 1 || std::any_of(counts.begin(), counts.end(), [](const auto& entry) {
                return std::get<ActionKind>(entry.first) == ActionKind::Adopt;
              });
    adopts_ &= !schedule_.forward_only;
    if (!adopts_) return;
    for (int pipeline = 0; pipeline < schedule_.pipelines; ++pipeline) {
      for (int stage = 0; stage < schedule_.stages; ++stage) {
        const auto found = counts.find({ActionKind::Adopt, pipeline, stage});
        const int64_t count = found == counts.end() ? 0 : found->second;
        const int64_t updates = schedule_.shift / schedule_.window;
        if (count == updates) continue;
        fail(fmt::format("the period of worker {} has {} A of stage {} of pipeline {}, and {} updates are made of it",
                         schedule_.worker_of(pipeline, stage), count, stage, pipeline, updates));
      }
    }
  }

  bool done(ActionKind kind, int pipeline, int stage, int64_t number) const {
    const auto found = done_.find({kind, pipeline, stage});
    return found != done_.end() && found->second.contains(number);
  }
  // Microbatch numbers of one pipeline step by `pipelines`; done sets count them from 0.
  int64_t index(const Action& action) const {
    return action.is_per_window() ? action.microbatch : action.microbatch / schedule_.pipelines;
  }
  bool microbatch_done(ActionKind kind, int pipeline, int stage, int64_t microbatch) const {
    return done(kind, pipeline, stage, microbatch / schedule_.pipelines);
  }
  bool backward_done(int pipeline, int stage, int64_t microbatch) const {
    return microbatch_done(ActionKind::Backward, pipeline, stage, microbatch) ||
           microbatch_done(ActionKind::BackwardWeights, pipeline, stage, microbatch);
  }

  // What the action still waits for, if anything.
  std::optional<Action> missing(const Action& action) const {
    const auto [kind, pipeline, stage, m] = action;
    switch (kind) {
      case ActionKind::Forward:
        if (stage > 0 && !microbatch_done(kind, pipeline, stage - 1, m)) return Action{kind, pipeline, stage - 1, m};
        return std::nullopt;
      case ActionKind::Backward:
      case ActionKind::BackwardInput: {
        if (!microbatch_done(ActionKind::Forward, pipeline, stage, m))
          return Action{ActionKind::Forward, pipeline, stage, m};
        const bool above = stage + 1 == schedule_.stages ||
                           microbatch_done(ActionKind::Backward, pipeline, stage + 1, m) ||
                           microbatch_done(ActionKind::BackwardInput, pipeline, stage + 1, m);
        if (!above) return Action{ActionKind::Backward, pipeline, stage + 1, m};
        return std::nullopt;
      }
      case ActionKind::BackwardWeights:
        if (!microbatch_done(ActionKind::BackwardInput, pipeline, stage, m))
          return Action{ActionKind::BackwardInput, pipeline, stage, m};
        return std::nullopt;
      case ActionKind::Update:
        for (int64_t b = m * schedule_.window; b < (m + 1) * schedule_.window; ++b) {
          const int p = schedule_.pipeline_of(b);
          if (!backward_done(p, stage, b)) return Action{ActionKind::Backward, p, stage, b};
        }
        return std::nullopt;
      case ActionKind::Adopt:
        if (!done(ActionKind::Update, 0, stage, m)) return Action{ActionKind::Update, 0, stage, m};
        return std::nullopt;
    }
    return std::nullopt;
  }

  bool try_perform(int worker, const Action& action) {
    check_belongs(worker, action);
    if (missing(action)) return false;
    done_[{action.kind, action.kind == ActionKind::Update ? 0 : action.pipeline, action.stage}].add(index(action));
    return true;
  }

  // What is wrong with an action wherever it stands.
  void check_belongs(int worker, const Action& action) const {
    const bool update = action.kind == ActionKind::Update;
    const int place = update ? schedule_.owner[action.stage] : schedule_.worker_of(action.pipeline, action.stage);
    if (place != worker) fail(worker, action, fmt::format("the placement says worker {}", place));
    if (schedule_.forward_only && action.kind != ActionKind::Forward)
      fail(worker, action, "a forward-only schedule has forwards alone");
    if (!action.is_per_window() && schedule_.pipeline_of(action.microbatch) != action.pipeline) {
      fail(worker, action,
           fmt::format("microbatch {} is pipeline {}'s", action.microbatch, schedule_.pipeline_of(action.microbatch)));
    }
    if (update && action.pipeline != 0)
      fail(worker, action, "an update is of all pipelines and written under pipeline 0");
    const bool repeated =
        done(action.kind, action.pipeline, action.stage, index(action)) ||
        (action.kind == ActionKind::Backward &&
         microbatch_done(ActionKind::BackwardInput, action.pipeline, action.stage, action.microbatch)) ||
        (action.kind == ActionKind::BackwardInput &&
         microbatch_done(ActionKind::Backward, action.pipeline, action.stage, action.microbatch));
    if (repeated) fail(worker, action, "has been done already");
    if (action.is_per_window()) {
      const auto found = done_.find({action.kind, action.pipeline, action.stage});
      const int64_t next = found == done_.end() ? 0 : found->second.next();
      if (action.microbatch != next) fail(worker, action, fmt::format("comes before that of window {}", next));
    }
  }

  // Nobody can go on. The worker to name is one whose own program is at fault, if there is one: it waits for something
  // that it does itself later, or that nobody does.
  [[noreturn]] void fail_blocked() const {
    std::optional<int> culprit;
    bool own_fault = false;
    for (int worker = 0; worker < schedule_.workers && !own_fault; ++worker) {
      if (!cursors_[worker].peek()) continue;
      const int giver = giver_of(*missing(*cursors_[worker].peek()));
      own_fault = giver == worker || !cursors_[giver].peek();
      if (!culprit || own_fault) culprit = worker;
    }
    const Action action = *cursors_[*culprit].peek();
    const Action needed = *missing(action);
    const int giver = giver_of(needed);
    const auto next = cursors_[giver].peek();
    const std::string why = giver == *culprit ? "which this worker does later or never"
                            : !next           ? fmt::format("which worker {} never does", giver)
                                              : fmt::format("but worker {} is at {}", giver, text(*next));
    fail(*culprit, action, fmt::format("deadlock: it needs {}, {}", text(needed), why));
  }
  int giver_of(const Action& action) const {
    return action.kind == ActionKind::Update ? schedule_.owner[action.stage]
                                             : schedule_.worker_of(action.pipeline, action.stage);
  }

  void check_complete() const {
    const int64_t per_pipeline = microbatches_ / schedule_.pipelines;
    for (int pipeline = 0; pipeline < schedule_.pipelines; ++pipeline) {
      for (int stage = 0; stage < schedule_.stages; ++stage) {
        const int worker = schedule_.worker_of(pipeline, stage);
        for (int64_t i = 0; i < per_pipeline; ++i) {
          const int64_t m = i * schedule_.pipelines + pipeline;
          if (!microbatch_done(ActionKind::Forward, pipeline, stage, m)) {
            fail(worker, Action{ActionKind::Forward, pipeline, stage, m}, "is missing");
          }
          if (!schedule_.forward_only && !backward_done(pipeline, stage, m)) {
            fail(worker, Action{ActionKind::Backward, pipeline, stage, m}, "is missing");
          }
        }
      }
    }
    for (int stage = 0; stage < schedule_.stages && !schedule_.forward_only; ++stage) {
      for (int64_t window = 0; window < microbatches_ / schedule_.window; ++window) {
        if (!done(ActionKind::Update, 0, stage, window))
          fail(schedule_.owner[stage], Action{ActionKind::Update, 0, stage, window}, "is missing");
      }
    }
    for (int pipeline = 0; pipeline < schedule_.pipelines && adopts_; ++pipeline) {
      for (int stage = 0; stage < schedule_.stages; ++stage) {
        for (int64_t window = 0; window < microbatches_ / schedule_.window; ++window) {
          const Action adopt{ActionKind::Adopt, pipeline, stage, window};
          if (!done(adopt.kind, pipeline, stage, window))
            fail(schedule_.worker_of(pipeline, stage), adopt, "is missing");
        }
      }
    }
  }

  // The next few actions of each worker; the first column is where it stands.
  std::string grid() const {
    std::string text;
    for (size_t worker = 0; worker < cursors_.size() && worker < 16; ++worker) {
      text += fmt::format("  worker {:<3}", worker);
      ProgramCursor cursor = cursors_[worker];
      for (int column = 0; column < 8 && cursor.peek(); ++column, cursor.advance())
        text += fmt::format(" {:>8}", this->text(*cursor.peek()));
      text += "\n";
    }
    if (!text.empty()) text.pop_back();
    return text;
  }

  const Schedule& schedule_;
  int64_t microbatches_;
  std::vector<ProgramCursor> cursors_;
  std::map<Key, DoneSet> done_;
  bool adopts_ = false;  // versions change at adoptions
};

}  // namespace

void validate(const Schedule& schedule, int64_t microbatches) {
  if (schedule.shift < 1 || schedule.window < 1)
    throw InputError(fmt::format("schedule {}: shift and window must be at least 1", schedule.name));
  Validation(schedule, microbatches > 0 ? microbatches : representative_microbatches(schedule)).run();
}

}  // namespace gyre
