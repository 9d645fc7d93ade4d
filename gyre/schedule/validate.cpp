#include "gyre/schedule/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/schedule/limits.h"
#include "gyre/schedule/ring_map.h"

namespace gyre {
namespace {

// Which numbers of an ascending series are done: all below `next`, and those in `early`, which few schedules need.
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

// Values by kind of action and replica; room is made for the kinds that are there.
template <typename Value>
class ByKind {
 public:
  explicit ByKind(const Schedule& schedule)
      : stages_(static_cast<size_t>(schedule.stages)), replicas_(stages_ * static_cast<size_t>(schedule.pipelines)) {}

  const Value* find(ActionKind kind, int pipeline, int stage) const {
    const auto& values = values_[number(kind)];
    return values.empty() ? nullptr : &values[place(pipeline, stage)];
  }
  Value& at(ActionKind kind, int pipeline, int stage) {
    auto& values = values_[number(kind)];
    if (values.empty()) values.resize(replicas_);
    return values[place(pipeline, stage)];
  }

 private:
  static size_t number(ActionKind kind) {
    switch (kind) {
      case ActionKind::Forward:
        return 0;
      case ActionKind::Backward:
        return 1;
      case ActionKind::BackwardInput:
        return 2;
      case ActionKind::BackwardWeights:
        return 3;
      case ActionKind::Update:
        return 4;
      case ActionKind::Adopt:
        return 5;
    }
    return 0;
  }
  size_t place(int pipeline, int stage) const {
    return static_cast<size_t>(pipeline) * stages_ + static_cast<size_t>(stage);
  }

  size_t stages_, replicas_;
  std::array<std::vector<Value>, 6> values_;
};

// Executes a restriction in the order of its programs, each worker as far as it can go, and checks every action.
class Validation {
 public:
  // microbatches: 0 for as many as the rest follows from. The schedule's sizes fit each other.
  Validation(const Schedule& schedule, int64_t microbatches)
      : schedule_(schedule),
        microbatches_(microbatches),
        done_(schedule),
        tied_order_(schedule.tied ? static_cast<size_t>(schedule.pipelines) : 0),
        gradients_(static_cast<size_t>(schedule.stages)),
        queued_(static_cast<size_t>(schedule.workers), true) {}

  void run() {
    check_periods();
    check_numbers();
    if (microbatches_ == 0) microbatches_ = representative_microbatches(schedule_);
    check_length();
    for (int worker = 0; worker < schedule_.workers; ++worker) {
      cursors_.emplace_back(schedule_, worker, microbatches_);
      runnable_.push_back(worker);
    }
    while (!runnable_.empty()) {
      const int worker = runnable_.front();
      runnable_.pop_front();
      queued_[worker] = false;
      for (ProgramCursor& cursor = cursors_[worker]; cursor.peek() && try_perform(worker, *cursor.peek());) {
        wake_dependents(*cursor.peek());
        cursor.advance();
      }
    }
    if (std::any_of(cursors_.begin(), cursors_.end(), [](const auto& c) { return c.peek().has_value(); })) {
      fail_blocked();
    }
    check_complete();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(fmt::format("schedule {}: {}", schedule_.name, what));
  }
  [[noreturn]] void fail(int worker, const Action& action, const std::string& what) const {
    fail(fmt::format("{} on worker {}: {}\n{}", text(action), worker, what, grid()));
  }
  std::string text(const Action& action) const { return to_string(action, schedule_.pipelines); }

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

  // Every repetition must do for each stage what `shift` microbatches need, neither more (something would be done
  // twice) nor less (activations would grow without bound, or gradients be lost).
  void check_periods() {
    ByKind<int> counts(schedule_);
    for (int worker = 0; worker < schedule_.workers; ++worker) {
      const Program& program = schedule_.programs[worker];
      for (const Action& action : program.prologue) check_range(worker, action);
      for (const Action& action : program.period) {
        check_range(worker, action);
        ++counts.at(action.kind, action.pipeline, action.stage);
      }
    }
    const int64_t per_pipeline = schedule_.shift / schedule_.pipelines;
    for (int stage = 0; stage < schedule_.stages; ++stage) {
      for (int pipeline = 0; pipeline < schedule_.pipelines; ++pipeline) {
        const auto count = [&](ActionKind kind) -> int64_t {
          const int* found = counts.find(kind, pipeline, stage);
          return found == nullptr ? 0 : *found;
        };
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
      check_updates(stage, counts);
    }
    check_adopts(counts);
  }

  void check_updates(int stage, const ByKind<int>& counts) const {
    const int64_t expected = schedule_.forward_only ? 0 : schedule_.shift / schedule_.window;
    for (int shard = 0; shard < schedule_.shards(); ++shard) {
      const int* found = counts.find(ActionKind::Update, shard, stage);
      const int64_t updates = found == nullptr ? 0 : *found;
      if (updates == expected) continue;
      const std::string which = schedule_.shards() == 1 ? "" : fmt::format("shard {} of ", shard);
      fail(fmt::format("the periods have {} updates of {}stage {}, and {} microbatches in windows of {} need {}",
                       updates, which, stage, schedule_.shift, schedule_.window, expected));
    }
  }

  // A pipeline's versions change either at the updates or at adoptions. One with adoptions must adopt every update of
  // every stage; one without changes with the owners, so each of its stages must stand beside its only owner.
  void check_adopts(const ByKind<int>& counts) {
    adopts_.resize(static_cast<size_t>(schedule_.pipelines));
    if (schedule_.forward_only) return;
    for (const auto& [pipeline, stage] : adopting_replicas(schedule_)) adopts_[static_cast<size_t>(pipeline)] = true;
    const int64_t updates = schedule_.shift / schedule_.window;
    for (int pipeline = 0; pipeline < schedule_.pipelines; ++pipeline) {
      for (int stage = 0; stage < schedule_.stages; ++stage) {
        const int worker = schedule_.worker_of(pipeline, stage), owner = schedule_.owner[0][stage];
        if (!adopts_[static_cast<size_t>(pipeline)]) {
          if (schedule_.shards() > 1) {
            fail(fmt::format("pipeline {} has no A; where updates are in shards, every one is adopted", pipeline));
          }
          if (worker == owner) continue;
          fail(
              fmt::format("pipeline {} has no A, and its stage {} is on worker {}, not on {}, which updates it; where "
                          "they differ, every update is adopted",
                          pipeline, stage, worker, owner));
        }
        const int* found = counts.find(ActionKind::Adopt, pipeline, stage);
        const int64_t count = found == nullptr ? 0 : *found;
        if (count == updates) continue;
        fail(fmt::format("the period of worker {} has {} A of stage {} of pipeline {}, and {} updates are made of it",
                         worker, count, stage, pipeline, updates));
      }
    }
  }

  // Each number once: the period has every remainder by `shift` once, so its numbers can only begin as many repetitions
  // late as there are actions of the kind before it. Higher ones would be waited for without end.
  void check_numbers() const {
    ByKind<int> before(schedule_);  // backwards of all kinds under one
    const auto common = [](const Action& action) {
      const bool half = action.kind == ActionKind::BackwardInput || action.kind == ActionKind::BackwardWeights;
      return half ? ActionKind::Backward : static_cast<ActionKind>(action.kind);
    };
    for (const Program& program : schedule_.programs) {
      for (const Action& action : program.prologue) ++before.at(common(action), action.pipeline, action.stage);
    }
    for (int worker = 0; worker < schedule_.workers; ++worker) {
      for (const auto* actions : {&schedule_.programs[worker].prologue, &schedule_.programs[worker].period}) {
        for (const Action& action : *actions) {
          const int64_t step = action.is_per_window() ? schedule_.shift / schedule_.window : schedule_.shift;
          const int* own = before.find(common(action), action.pipeline, action.stage);
          const int64_t end = (static_cast<int64_t>(own == nullptr ? 0 : *own) + 1) * step;
          if (action.microbatch < end) continue;
          fail(
              fmt::format("{} on worker {}: its number leaves others out; with {} of its kind before the period, which "
                          "repeats after {}, numbers are below {}",
                          text(action), worker, end / step - 1, step, end));
        }
      }
    }
  }

  // What must be walked to say that the schedule is valid.
  void check_length() const {
    if (count_actions(schedule_, microbatches_) <= kMostSteps) return;
    fail(
        fmt::format("its first {} microbatches have more than {} actions, too many to be checked; make the programs "
                    "shorter",
                    microbatches_, kMostSteps));
  }

  bool done(ActionKind kind, int pipeline, int stage, int64_t number) const {
    const DoneSet* found = done_.find(kind, pipeline, stage);
    return found != nullptr && found->contains(number);
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

  bool gradients_done(int stage, int64_t window) const {
    const Gradients* gradients = gradients_.find(static_cast<size_t>(stage), window);
    return gradients != nullptr && gradients->count == schedule_.window;
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
        if (const auto tied = missing_tied(stage, m)) return tied;
        if (gradients_done(stage, m)) return std::nullopt;
        for (int64_t b = m * schedule_.window; b < (m + 1) * schedule_.window; ++b) {
          const int p = schedule_.pipeline_of(b);
          if (!backward_done(p, stage, b)) return Action{ActionKind::Backward, p, stage, b};
        }
        return std::nullopt;
      case ActionKind::Adopt:
        for (int shard = 0; shard < schedule_.shards(); ++shard) {
          if (!done(ActionKind::Update, shard, stage, m)) return Action{ActionKind::Update, shard, stage, m};
        }
        return std::nullopt;
    }
    return std::nullopt;
  }

  // The update of a first stage that shares a weight with the last one waits for that one's gradients too.
  std::optional<Action> missing_tied(int stage, int64_t window) const {
    const int last = schedule_.stages - 1;
    if (!schedule_.tied || stage != 0 || last == 0) return std::nullopt;
    for (int64_t b = window * schedule_.window; b < (window + 1) * schedule_.window; ++b) {
      const int p = schedule_.pipeline_of(b);
      if (!backward_done(p, last, b)) return Action{ActionKind::Backward, p, last, b};
    }
    return std::nullopt;
  }

  // The last stage has the newest version of the tied weight that it was sent, so it must forward microbatches in the
  // order in which the first stage did.
  void check_tied_order(int worker, const Action& action) {
    if (!schedule_.tied || action.kind != ActionKind::Forward || schedule_.stages == 1) return;
    auto& waiting = tied_order_[static_cast<size_t>(action.pipeline)];
    if (action.stage == 0) waiting.push_back(action.microbatch);
    if (action.stage + 1 < schedule_.stages) return;
    if (waiting.front() != action.microbatch) {
      fail(worker, action,
           fmt::format("the first stage forwarded {} before it, and with a tied weight the last stage keeps that order",
                       text({ActionKind::Forward, action.pipeline, 0, waiting.front()})));
    }
    waiting.pop_front();
  }

  bool try_perform(int worker, const Action& action) {
    check_belongs(worker, action);
    if (missing(action)) return false;
    check_tied_order(worker, action);
    done_.at(action.kind, action.pipeline, action.stage).add(index(action));
    const auto stage = static_cast<size_t>(action.stage);
    if (action.kind == ActionKind::Backward || action.kind == ActionKind::BackwardWeights) {
      ++gradients_.at(stage, action.microbatch / schedule_.window).count;
    } else if (action.kind == ActionKind::Update) {
      if (++gradients_.at(stage, action.microbatch).updates == schedule_.shards()) {
        gradients_.erase(stage, action.microbatch);
      }
    }
    return true;
  }

  // Lets those go on that may have waited for the action.
  void wake_dependents(const Action& action) {
    const auto wake = [&](int worker) {
      if (queued_[worker]) return;
      queued_[worker] = true;
      runnable_.push_back(worker);
    };
    switch (action.kind) {
      case ActionKind::Forward:
        if (action.stage + 1 < schedule_.stages) wake(schedule_.worker_of(action.pipeline, action.stage + 1));
        break;
      case ActionKind::Backward:
      case ActionKind::BackwardInput:
      case ActionKind::BackwardWeights:
        if (action.stage > 0) wake(schedule_.worker_of(action.pipeline, action.stage - 1));
        for (const auto& owner : schedule_.owner) wake(owner[action.stage]);
        if (schedule_.tied && action.stage + 1 == schedule_.stages) {
          for (const auto& owner : schedule_.owner) wake(owner[0]);
        }
        break;
      case ActionKind::Update:
        for (int pipeline = 0; pipeline < schedule_.pipelines; ++pipeline) {
          wake(schedule_.worker_of(pipeline, action.stage));
        }
        break;
      case ActionKind::Adopt:
        break;
    }
  }

  // What is wrong with an action wherever it stands.
  void check_belongs(int worker, const Action& action) const {
    const int place = schedule_.worker_of(action);
    if (place != worker) fail(worker, action, fmt::format("the placement says worker {}", place));
    if (schedule_.forward_only && action.kind != ActionKind::Forward)
      fail(worker, action, "a forward-only schedule has forwards alone");
    if (!action.is_per_window() && schedule_.pipeline_of(action.microbatch) != action.pipeline) {
      fail(worker, action,
           fmt::format("microbatch {} is pipeline {}'s", action.microbatch, schedule_.pipeline_of(action.microbatch)));
    }
    const bool repeated =
        done(action.kind, action.pipeline, action.stage, index(action)) ||
        (action.kind == ActionKind::Backward &&
         microbatch_done(ActionKind::BackwardInput, action.pipeline, action.stage, action.microbatch)) ||
        (action.kind == ActionKind::BackwardInput &&
         microbatch_done(ActionKind::Backward, action.pipeline, action.stage, action.microbatch));
    if (repeated) fail(worker, action, "has been done already");
    if (action.is_per_window()) {
      const DoneSet* found = done_.find(action.kind, action.pipeline, action.stage);
      const int64_t next = found == nullptr ? 0 : found->next();
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
      const int giver = schedule_.worker_of(*missing(*cursors_[worker].peek()));
      own_fault = giver == worker || !cursors_[giver].peek();
      if (!culprit || own_fault) culprit = worker;
    }
    const Action action = *cursors_[*culprit].peek();
    const Action needed = *missing(action);
    const int giver = schedule_.worker_of(needed);
    const auto next = cursors_[giver].peek();
    const std::string why = giver == *culprit ? "which this worker does later or never"
                            : !next           ? fmt::format("which worker {} never does", giver)
                                              : fmt::format("but worker {} is at {}", giver, text(*next));
    fail(*culprit, action, fmt::format("deadlock: it needs {}, {}", text(needed), why));
  }

  // None of the pipeline's microbatches before it lacks its forward or backward.
  int64_t first_missing(int pipeline, int stage) const {
    const auto next = [&](ActionKind kind) {
      const DoneSet* found = done_.find(kind, pipeline, stage);
      return found == nullptr ? 0 : found->next();
    };
    const int64_t forwards = next(ActionKind::Forward);
    if (schedule_.forward_only) return forwards;
    return std::min(forwards, std::max(next(ActionKind::Backward), next(ActionKind::BackwardWeights)));
  }

  void check_complete() const {
    const int64_t per_pipeline = microbatches_ / schedule_.pipelines;
    for (int pipeline = 0; pipeline < schedule_.pipelines; ++pipeline) {
      for (int stage = 0; stage < schedule_.stages; ++stage) {
        const int worker = schedule_.worker_of(pipeline, stage);
        for (int64_t i = first_missing(pipeline, stage); i < per_pipeline; ++i) {
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
        for (int shard = 0; shard < schedule_.shards(); ++shard) {
          const Action update{ActionKind::Update, shard, stage, window};
          if (!done(update.kind, shard, stage, window)) fail(schedule_.worker_of(update), update, "is missing");
        }
      }
    }
    for (int pipeline = 0; pipeline < schedule_.pipelines; ++pipeline) {
      if (!adopts_[static_cast<size_t>(pipeline)]) continue;
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
  ByKind<DoneSet> done_;
  std::vector<std::deque<int64_t>> tied_order_;  // [pipeline]: forwarded by the first stage and not by the last
  struct Gradients {
    int64_t count = 0;  // that are in
    int updates = 0;    // shards that have taken them
  };
  mutable RingMap<Gradients> gradients_;  // by stage and window
  std::deque<int> runnable_;
  std::vector<bool> queued_;
  std::vector<bool> adopts_;  // [pipeline]: its versions change at adoptions
};

// The sizes fit each other, and every worker that is named is there.
void check_placement(const Schedule& schedule) {
  const auto fail = [&](const std::string& what) {
    throw InputError(fmt::format("schedule {}: {}", schedule.name, what));
  };
  if (schedule.stages < 1 || schedule.workers < 1 || schedule.pipelines < 1)
    fail("stages, workers and pipelines must be at least 1");
  if (schedule.window < 1 || schedule.shift < 1 || schedule.shift % schedule.window != 0 ||
      schedule.shift % schedule.pipelines != 0) {
    fail("shift must be a multiple of the window and of the number of pipelines");
  }
  const auto stages = static_cast<size_t>(schedule.stages);
  if (schedule.placement.size() != static_cast<size_t>(schedule.pipelines) || schedule.owner.empty() ||
      schedule.programs.size() != static_cast<size_t>(schedule.workers)) {
    fail("placement, owner and programs must fit the numbers of pipelines, stages and workers");
  }
  if (schedule.owner.size() > schedule.placement.size()) {
    fail(fmt::format("updates are in {} shards, and there are {} pipelines; give at most an owner line for each",
                     schedule.owner.size(), schedule.placement.size()));
  }
  const auto check_workers = [&](const std::vector<int>& workers) {
    if (workers.size() != stages) fail("a placement names another number of stages");
    for (const int worker : workers) {
      if (worker < 0 || worker >= schedule.workers)
        fail(fmt::format("a placement names worker {}, which is not there", worker));
    }
  };
  for (const auto& workers : schedule.placement) check_workers(workers);
  for (const auto& workers : schedule.owner) check_workers(workers);
  for (int stage = 0; stage < schedule.stages; ++stage) {
    std::set<int> owners;
    for (const auto& shard : schedule.owner) {
      if (!owners.insert(shard[stage]).second) {
        fail(fmt::format("worker {} owns two shards of stage {}; give each to a worker of its own", shard[stage],
                         stage));
      }
    }
  }
}

}  // namespace

void validate(const Schedule& schedule, int64_t microbatches) {
  check_placement(schedule);
  Validation(schedule, microbatches).run();
}

}  // namespace gyre
