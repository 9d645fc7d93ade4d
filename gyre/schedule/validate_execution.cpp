// Checks that the programs can be executed. A dry run of a restriction advances each worker as far as it can go and
// checks the order of its actions. Another advances each worker only as far as the others need it, until a repetition
// shows that all later ones can be done too.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "gyre/schedule/done_actions.h"
#include "gyre/schedule/limits.h"
#include "gyre/schedule/validate_checks.h"

namespace gyre {
namespace {

constexpr int kMostShown = 8;  // workers of a circle that an error shows

class DryRun {
 public:
  DryRun(const Schedule& schedule, int64_t microbatches)
      : schedule_(schedule),
        microbatches_(microbatches),
        done_(schedule),
        tied_order_(schedule.tied ? static_cast<size_t>(schedule.pipelines) : 0),
        queued_(static_cast<size_t>(schedule.workers)),
        performed_(static_cast<size_t>(schedule.workers)) {
    for (int worker = 0; worker < schedule_.workers; ++worker) cursors_.emplace_back(schedule_, worker, microbatches_);
  }

  void run() {
    for (int worker = 0; worker < schedule_.workers; ++worker) wake(worker);
    while (!runnable_.empty()) {
      const int worker = runnable_.front();
      runnable_.pop_front();
      queued_[worker] = false;
      for (ProgramCursor& cursor = cursors_[worker]; cursor.peek() && try_perform(worker, *cursor.peek());) {
        wake_dependents(*cursor.peek());
        cursor.advance();
      }
    }
    const auto blocked = std::ranges::find_if(cursors_, [](const auto& cursor) { return cursor.peek().has_value(); });
    if (blocked != cursors_.end()) fail_blocked(static_cast<int>(blocked - cursors_.begin()));
    check_microbatches();
    check_updates();
    check_adopts();
  }

  // A circle in which workers wait for each other may need more microbatches than a restriction has. So here all
  // workers do one repetition after another, and of later repetitions only what is needed for that. Once a repetition
  // takes every worker exactly one repetition further, the next can do the same actions with higher numbers, and so can
  // all later ones.
  void run_endlessly() {
    std::vector<int64_t> ends;  // [worker]: of its last whole repetition
    for (const Program& program : schedule_.programs) ends.push_back(std::ssize(program.prologue));
    int64_t steps = 0;
    for (bool repeats = false; !repeats;) {
      repeats = true;
      const std::vector<int64_t> before = performed_;
      for (int worker = 0; worker < schedule_.workers; ++worker) {
        for (const int64_t end = ends[worker] + period(worker); performed_[worker] < end;) perform_next(worker);
      }
      for (int worker = 0; worker < schedule_.workers; ++worker) {
        ends[worker] += period(worker);
        const int64_t taken = performed_[worker] - before[worker];
        repeats = repeats && taken == period(worker);
        steps += taken;
      }
      if (steps > kMostSteps) fail_validation(schedule_, "its workers run too far ahead of each other to be checked");
    }
  }

 private:
  int64_t period(int worker) const { return std::ssize(schedule_.programs[worker].period); }

  // Performs the worker's next action, and before it whatever others must do for that.
  void perform_next(int worker) {
    waiting_.assign(1, worker);  // each for the one behind it
    queued_[worker] = true;
    while (!waiting_.empty()) {
      const int at = waiting_.back();
      ProgramCursor& cursor = cursors_[at];
      if (const auto needed = done_.missing(*cursor.peek())) {
        const int giver = schedule_.worker_of(*needed);
        if (queued_[giver] || !cursors_[giver].peek()) fail_blocked(at);
        waiting_.push_back(giver);
        queued_[giver] = true;
        continue;
      }
      done_.add(*cursor.peek());
      cursor.advance();
      ++performed_[at];
      waiting_.pop_back();
      queued_[at] = false;
    }
  }

  bool try_perform(int worker, const Action& action) {
    check_not_repeated(worker, action);
    if (done_.missing(action)) return false;
    check_tied_order(worker, action);
    done_.add(action);
    return true;
  }

  // Wakes the workers that may have waited for the action.
  void wake_dependents(const Action& action) {
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
  void wake(int worker) {
    if (queued_[worker]) return;
    queued_[worker] = true;
    runnable_.push_back(worker);
  }

  void check_not_repeated(int worker, const Action& action) const {
    if (done_.contains(action)) fail(worker, action, "has been done already");
    const auto check_not_done_as = [&](ActionKind kind) {
      const Action other{kind, action.pipeline, action.stage, action.microbatch};
      if (done_.contains(other)) fail(worker, action, fmt::format("{} has done it already", text(other)));
    };
    if (action.kind == ActionKind::Backward) check_not_done_as(ActionKind::BackwardInput);
    if (action.kind == ActionKind::BackwardInput) check_not_done_as(ActionKind::Backward);
    if (action.is_per_window()) {
      const int64_t next = done_.next(action.kind, action.pipeline, action.stage);
      if (action.microbatch != next) fail(worker, action, fmt::format("comes before that of window {}", next));
    }
  }

  // The last stage reads the newest version of the tied weight that it has received, so it must forward microbatches in
  // the order in which the first stage did.
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

  // No worker can go on. If workers wait for each other in a circle, shows all of it: an action in the wrong place is
  // one that a worker of the circle is at, or one that is needed of it.
  [[noreturn]] void fail_blocked(int blocked) const {
    const int culprit = find_culprit(blocked), giver = giver_to(culprit);
    std::string what = "deadlock: it needs " + text(needed_by(culprit));
    if (giver == culprit) {
      what += ", which this worker does later or never";
    } else if (!cursors_[giver].peek()) {
      what += fmt::format(", which worker {} never does", giver);
    } else {
      int worker = giver;
      for (int shown = 1; worker != culprit && shown < kMostShown; worker = giver_to(worker), ++shown) {
        what += fmt::format(", but worker {} is at {}, which needs {}", worker, text(*cursors_[worker].peek()),
                            text(needed_by(worker)));
      }
      if (worker != culprit) what += ", and so on";
    }
    fail(culprit, *cursors_[culprit].peek(), what);
  }

  // Goes from a blocked worker to the one that it waits for, and on, to a worker whose own program is at fault (it
  // waits for something that it does itself later, or that no worker does), or else to one of a circle.
  int find_culprit(int worker) const {
    for (std::vector<bool> seen(cursors_.size()); !seen[worker];) {
      seen[worker] = true;
      const int giver = giver_to(worker);
      if (giver == worker || !cursors_[giver].peek()) break;
      worker = giver;
    }
    return worker;
  }

  // What a blocked worker waits for, and the worker that should do it.
  Action needed_by(int worker) const {
    const Action& action = *cursors_[worker].peek();
    return in_its_program(*done_.missing(action), action);
  }
  int giver_to(int worker) const { return schedule_.worker_of(*done_.missing(*cursors_[worker].peek())); }

  // What is missing for the action, as its program has it: what needs one half of a backward does not tell whether that
  // backward is split.
  Action in_its_program(const Action& missing, const Action& action) const {
    if (missing.kind != ActionKind::Backward) return missing;
    return backward_of(schedule_, missing.pipeline, missing.stage, missing.microbatch,
                       action.kind == ActionKind::Update ? ActionKind::BackwardWeights : ActionKind::BackwardInput);
  }

  void check_microbatches() const {
    const int64_t per_pipeline = microbatches_ / schedule_.pipelines;
    for (int pipeline = 0; pipeline < schedule_.pipelines; ++pipeline) {
      for (int stage = 0; stage < schedule_.stages; ++stage) {
        const int worker = schedule_.worker_of(pipeline, stage);
        for (int64_t i = first_missing(pipeline, stage); i < per_pipeline; ++i) {
          const int64_t m = i * schedule_.pipelines + pipeline;
          const Action forward{ActionKind::Forward, pipeline, stage, m};
          if (!done_.contains(forward)) fail(worker, forward, "is missing");
          if (!schedule_.forward_only && !done_.has_backward(pipeline, stage, m)) {
            fail(worker, {ActionKind::Backward, pipeline, stage, m}, "is missing");
          }
        }
      }
    }
  }

  // The first index whose forward or backward may be missing: all microbatches of the pipeline before it have both.
  int64_t first_missing(int pipeline, int stage) const {
    const auto next = [&](ActionKind kind) { return done_.next(kind, pipeline, stage); };
    const int64_t forwards = next(ActionKind::Forward);
    if (schedule_.forward_only) return forwards;
    return std::min(forwards, std::max(next(ActionKind::Backward), next(ActionKind::BackwardWeights)));
  }

  void check_updates() const {
    if (schedule_.forward_only) return;
    for (int stage = 0; stage < schedule_.stages; ++stage) {
      for (int64_t window = 0; window < microbatches_ / schedule_.window; ++window) {
        for (int shard = 0; shard < schedule_.shards(); ++shard) {
          check_done({ActionKind::Update, shard, stage, window});
        }
      }
    }
  }

  void check_adopts() const {
    if (schedule_.forward_only) return;
    const std::vector<bool> adopts = adopting_pipelines(schedule_);
    for (int pipeline = 0; pipeline < schedule_.pipelines; ++pipeline) {
      if (!adopts[static_cast<size_t>(pipeline)]) continue;
      for (int stage = 0; stage < schedule_.stages; ++stage) {
        for (int64_t window = 0; window < microbatches_ / schedule_.window; ++window) {
          check_done({ActionKind::Adopt, pipeline, stage, window});
        }
      }
    }
  }

  void check_done(const Action& action) const {
    if (!done_.contains(action)) fail(schedule_.worker_of(action), action, "is missing");
  }

  [[noreturn]] void fail(int worker, const Action& action, const std::string& what) const {
    fail_validation(schedule_, worker, action, what + "\n" + grid(worker));
  }
  std::string text(const Action& action) const { return to_string(action, schedule_.pipelines); }

  // The next few actions of the worker and those around it; the first column is the one that each is at.
  std::string grid(int around) const {
    constexpr int kMostRows = 16;
    std::string text;
    const int first = std::max(0, std::min(around - kMostRows / 2, schedule_.workers - kMostRows));
    for (int worker = first; worker < schedule_.workers && worker < first + kMostRows; ++worker) {
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
  std::vector<ProgramCursor> cursors_;  // [worker]
  DoneActions done_;
  std::vector<std::deque<int64_t>> tied_order_;  // [pipeline]: forwarded by the first stage, not yet by the last
  std::deque<int> runnable_;
  std::vector<bool> queued_;        // [worker]: it is in runnable_ or waiting_
  std::vector<int> waiting_;        // workers that wait for each other
  std::vector<int64_t> performed_;  // [worker]: actions, in an endless run
};

}  // namespace

void check_execution(const Schedule& schedule, int64_t microbatches) {
  DryRun(schedule, microbatches).run();
  DryRun(schedule, kUnlimited).run_endlessly();
}

}  // namespace gyre
