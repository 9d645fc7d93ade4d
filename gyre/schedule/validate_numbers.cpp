// Names the action that is missing or there twice. Sorts a replica's actions, so it is for replicas whose counts are
// known to be wrong.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gyre/core/text.h"
#include "gyre/schedule/validate_checks.h"

namespace gyre {
namespace {

struct Entry {
  Action action;
  bool repeats;  // it is in the period
};

// The actions whose numbers have one remainder modulo the step of a repetition, ascending. Only the last may repeat.
class Chain {
 public:
  Chain(std::span<const Entry> entries, int64_t step) : entries_(entries), step_(step) {}

  size_t size() const { return entries_.size(); }
  // The action done for the i-th time; nothing if the chain ends before.
  std::optional<Action> at(size_t i) const {
    if (i < size()) return entries_[i].action;
    if (entries_.empty() || !entries_.back().repeats) return std::nullopt;
    Action action = entries_.back().action;
    action.microbatch += static_cast<int64_t>(i - size() + 1) * step_;
    return action;
  }

 private:
  std::span<const Entry> entries_;
  int64_t step_;
};

class NumbersOfReplica {
 public:
  NumbersOfReplica(const Schedule& schedule, ActionKind kind, int pipeline, int stage)
      : schedule_(schedule), first_{kind, pipeline, stage, 0}, worker_(schedule.worker_of(first_)) {
    if (first_.is_per_window()) {
      step_ = schedule.shift / schedule.window;
    } else {
      step_ = schedule.shift;
      interval_ = schedule.pipelines;
      first_.microbatch = pipeline;
    }
  }

  void check() const {
    if (first_.kind != ActionKind::Backward) return check_all(entries({first_.kind}), {});
    const auto weights = entries({ActionKind::BackwardWeights});
    check_all(entries({ActionKind::Backward, ActionKind::BackwardInput}), weights);
    check_halves(entries({ActionKind::BackwardInput}), weights);
  }

 private:
  // The replica's actions of the kinds: by remainder, then by number.
  std::vector<Entry> entries(std::initializer_list<ActionKind> kinds) const {
    std::vector<Entry> found;
    const auto add = [&](const std::vector<Action>& actions, bool repeats) {
      for (const Action& action : actions) {
        if (action.stage != first_.stage || action.pipeline != first_.pipeline) continue;
        if (std::find(kinds.begin(), kinds.end(), action.kind) != kinds.end()) found.push_back({action, repeats});
      }
    };
    add(schedule_.programs[worker_].prologue, false);
    add(schedule_.programs[worker_].period, true);
    std::stable_sort(found.begin(), found.end(), [&](const Entry& a, const Entry& b) {
      return std::pair(remainder(a), a.action.microbatch) < std::pair(remainder(b), b.action.microbatch);
    });
    return found;
  }
  int64_t remainder(const Entry& entry) const { return entry.action.microbatch % step_; }

  // Removes the entries with a remainder from the front of `rest`.
  Chain take(std::span<const Entry>& rest, int64_t with_remainder) const {
    size_t size = 0;
    for (; size < rest.size() && remainder(rest[size]) == with_remainder; ++size) {
      if (size > 0 && rest[size - 1].repeats) fail_done_by(rest[size].action, rest[size - 1].action);
    }
    const Chain chain(rest.first(size), step_);
    rest = rest.subspan(size);
    return chain;
  }

  // Every number must be there. What is missing of a backward whose weight half is there is its input half.
  void check_all(std::span<const Entry> rest, std::span<const Entry> weights) const {
    for (Entry wanted{first_, true}; wanted.action.microbatch < step_; wanted.action.microbatch += interval_) {
      const int64_t number = wanted.action.microbatch;
      while (!weights.empty() && remainder(weights.front()) < number) weights = weights.subspan(1);
      const bool split = !weights.empty() && remainder(weights.front()) == number;
      check_same(take(rest, number), Chain({&wanted, 1}, step_), split ? ActionKind::BackwardInput : first_.kind);
    }
  }

  // There must be a weight half for every input half.
  void check_halves(std::span<const Entry> inputs, std::span<const Entry> weights) const {
    while (!inputs.empty() || !weights.empty()) {
      int64_t number = step_;
      for (const auto& rest : {inputs, weights}) {
        if (!rest.empty()) number = std::min(number, remainder(rest.front()));
      }
      const Chain wanted = take(inputs, number);
      check_same(take(weights, number), wanted, ActionKind::BackwardWeights);
    }
  }

  // Beyond the longer chain both are repetitions, and once they are the same they stay the same.
  void check_same(const Chain& found, const Chain& wanted, ActionKind kind) const {
    for (size_t i = 0; i <= std::max(found.size(), wanted.size()); ++i) {
      const auto have = found.at(i), want = wanted.at(i);
      if (want && (!have || have->microbatch > want->microbatch)) fail_missing(with_kind(*want, kind), have);
      if (!have || (want && have->microbatch == want->microbatch)) continue;
      // One of the same number precedes it. If none does, it is a weight half, and the backward is not split.
      const bool again = i > 0 && found.at(i - 1)->microbatch == have->microbatch;
      fail_done_by(*have, again ? *found.at(i - 1) : with_kind(*have, ActionKind::Backward));
    }
  }

  static Action with_kind(Action action, ActionKind kind) {
    action.kind = kind;
    return action;
  }

  // `next` is in its place, if anything is.
  [[noreturn]] void fail_missing(const Action& action, const std::optional<Action>& next) const {
    std::string what = "is missing";
    if (action.kind == ActionKind::BackwardInput || action.kind == ActionKind::BackwardWeights) {
      const bool input = action.kind == ActionKind::BackwardInput;
      const Action other = with_kind(action, input ? ActionKind::BackwardWeights : ActionKind::BackwardInput);
      what += fmt::format("; it is the other half of {}", text(other));
    } else if (next) {
      what += fmt::format(" before {}", text(*next));
    } else {
      what += " from the period, which is for " + counted(step_, action.is_per_window() ? "window" : "microbatch");
    }
    fail_validation(schedule_, worker_, action, what);
  }

  [[noreturn]] void fail_done_by(const Action& action, const Action& other) const {
    if (action == other) fail_validation(schedule_, worker_, action, "is there twice");
    const char* when = action.microbatch == other.microbatch ? "" : ", when it is repeated";
    fail_validation(schedule_, worker_, action, fmt::format("{} does the same{}", text(other), when));
  }
  std::string text(const Action& action) const { return to_string(action, schedule_.pipelines); }

  const Schedule& schedule_;
  Action first_;  // the first that there must be
  int worker_;
  int64_t step_, interval_ = 1;  // between repetitions, and between numbers
};

}  // namespace

void check_each_once(const Schedule& schedule, ActionKind kind, int pipeline, int stage) {
  NumbersOfReplica(schedule, kind, pipeline, stage).check();
}

}  // namespace gyre
