#include "gyre/schedule/schedule.h"

#include <algorithm>

#include "gyre/schedule/delay.h"

namespace gyre {
namespace {
constexpr std::pair<WeightPolicy, std::string_view> kWeightPolicies[] = {{WeightPolicy::Stash, "stash"},
                                                                         {WeightPolicy::Latest, "latest"},
                                                                         {WeightPolicy::Predict, "predict"},
                                                                         {WeightPolicy::Corrected, "corrected"}};
}  // namespace

std::string_view to_string(WeightPolicy policy) {
  for (const auto& [known, name] : kWeightPolicies) {
    if (known == policy) return name;
  }
  return "";
}

std::optional<WeightPolicy> parse_weight_policy(std::string_view text) {
  for (const auto& [policy, name] : kWeightPolicies) {
    if (name == text) return policy;
  }
  return std::nullopt;
}

std::vector<std::string> weight_choices() {
  std::vector<std::string> choices = {"auto"};
  for (const auto& [policy, name] : kWeightPolicies) choices.emplace_back(name);
  return choices;
}

namespace {

// The last microbatch that the action needs; a window's actions need the whole window. An action belongs to a
// restriction if this microbatch does.
int64_t last_microbatch(const Action& action, int64_t window) {
  return action.is_per_window() ? (action.microbatch + 1) * window - 1 : action.microbatch;
}

}  // namespace

int64_t Schedule::microbatches_in_window(int pipeline, int64_t number) const {
  if (window % pipelines == 0) return window / pipelines;  // the usual case; this is called for every gradient
  // The pipeline's microbatches with numbers below m.
  const auto below = [&](int64_t m) { return (m - pipeline + pipelines - 1) / pipelines; };
  return below((number + 1) * window) - below(number * window);
}

bool Schedule::has_flush() const {
  if (forward_only) return false;
  // One repetition is enough: relative to its own number, a forward reads the same version in every repetition.
  const ReplicaNumbers replicas(*this);
  for (int worker = 0; worker < workers; ++worker) {
    VersionTracker tracker(*this, replicas, worker);
    size_t left = programs[worker].prologue.size() + programs[worker].period.size();
    for (ProgramCursor cursor(*this, worker); left > 0; --left, cursor.advance()) {
      const Action& action = *cursor.peek();
      const int64_t version = tracker.track(action);
      if (action.kind == ActionKind::Forward && delay_of(*this, action.microbatch, version) > 0) return false;
    }
  }
  return true;
}

int64_t representative_microbatches(const Schedule& schedule) {
  int64_t prologue_end = 0;
  for (const Program& program : schedule.programs) {
    for (const Action& action : program.prologue) {
      prologue_end = std::max(prologue_end, last_microbatch(action, schedule.window) + 1);
    }
  }
  const int64_t repetitions = (prologue_end + schedule.shift - 1) / schedule.shift + 4;
  return repetitions * schedule.shift;
}

int64_t representative_actions(const Schedule& schedule, int worker) {
  const Program& program = schedule.programs[worker];
  int64_t last_forward = 0;
  int64_t first_backward = kUnlimited;
  for (const Action& action : program.period) {
    if (action.kind == ActionKind::Forward) {
      last_forward = std::max(last_forward, action.microbatch);
    } else if (action.kind == ActionKind::Backward || action.kind == ActionKind::BackwardInput) {
      first_backward = std::min(first_backward, action.microbatch);
    }
  }
  // In a replica's period the forwards have every remainder modulo `shift` once, and so do the backwards. So each
  // repetition starts with as many microbatches in flight as the one before, with numbers `shift` higher. The versions
  // that they read repeat too, once the microbatches that the prologue forwarded are done: these are below last_forward
  // - shift + 1, and repetition n (from 0) has no backward below first_backward + n * shift.
  const int64_t draining = std::max<int64_t>(0, last_forward - first_backward) / schedule.shift;
  return std::ssize(program.prologue) + (draining + 1) * std::ssize(program.period);
}

int64_t count_actions(const Schedule& schedule, int64_t microbatches) {
  int64_t once = 0, repeated = 0;
  for (const Program& program : schedule.programs) {
    // A deep pipeline's prologue has many microbatches; a short run has few of them.
    once += std::ranges::count_if(program.prologue, [&](const Action& action) {
      return last_microbatch(action, schedule.window) < microbatches;
    });
    repeated += std::ssize(program.period);
  }
  const int64_t repetitions = microbatches / schedule.shift + (microbatches % schedule.shift == 0 ? 0 : 1);
  if (repetitions > 0 && repeated > (kUnlimited - once) / repetitions) return kUnlimited;
  return once + repeated * repetitions;
}

ProgramCursor::ProgramCursor(const Schedule& schedule, int worker, int64_t limit)
    : position_(schedule.programs[worker].prologue.data()),
      schedule_(schedule),
      program_(schedule.programs[worker]),
      limit_(limit) {
  period_first_ = kUnlimited;
  for (const Action& action : program_.period) {
    period_first_ = std::min(period_first_, last_microbatch(action, schedule_.window));
    period_last_ = std::max(period_last_, last_microbatch(action, schedule_.window));
  }
  settle();
}

void ProgramCursor::restrict_to(int64_t limit) {
  limit_ = std::min(limit_, limit);
  whole_end_ = nullptr;
  if (current_ && last_microbatch(*current_, schedule_.window) >= limit_) settle();
}

// Moves to the first action at or after the position that lies below the limit.
void ProgramCursor::settle() {
  current_.reset();
  const Action* const begin = program_.period.data();
  const Action* const end = begin + program_.period.size();
  if (repetition_ < 0) {
    for (const Action* prologue_end = program_.prologue.data() + program_.prologue.size(); position_ < prologue_end;
         ++position_) {
      if (last_microbatch(*position_, schedule_.window) >= limit_) continue;
      current_ = *position_;
      return;
    }
    repetition_ = 0;
    position_ = begin;
  }
  if (begin == end) return;
  for (;; ++position_) {
    if (position_ == end) {
      ++repetition_;
      position_ = begin;
    }
    microbatch_offset_ = repetition_ * schedule_.shift;
    window_offset_ = repetition_ * (schedule_.shift / schedule_.window);
    // If even the earliest action of this repetition is past the limit, nothing is left here or in later repetitions.
    if (position_ == begin && period_first_ + microbatch_offset_ >= limit_) return;
    whole_end_ = period_last_ + microbatch_offset_ < limit_ ? end : nullptr;
    take_from_period();
    if (last_microbatch(*current_, schedule_.window) < limit_) return;
    current_.reset();
  }
}

std::set<std::pair<int, int>> adopting_replicas(const Schedule& schedule, int worker) {
  std::set<std::pair<int, int>> replicas;
  const Program& program = schedule.programs[worker];
  for (const auto* actions : {&program.prologue, &program.period}) {
    for (const Action& action : *actions) {
      if (action.kind == ActionKind::Adopt) replicas.emplace(action.pipeline, action.stage);
    }
  }
  return replicas;
}

std::set<std::pair<int, int>> adopting_replicas(const Schedule& schedule) {
  std::set<std::pair<int, int>> replicas;
  for (int worker = 0; worker < schedule.workers; ++worker) replicas.merge(adopting_replicas(schedule, worker));
  return replicas;
}

std::vector<bool> adopting_pipelines(const Schedule& schedule) {
  std::vector<bool> adopts(static_cast<size_t>(schedule.pipelines));
  for (const Program& program : schedule.programs) {
    for (const auto* actions : {&program.prologue, &program.period}) {
      for (const Action& action : *actions) {
        if (action.kind == ActionKind::Adopt) adopts[static_cast<size_t>(action.pipeline)] = true;
      }
    }
  }
  return adopts;
}

std::optional<EarlyChange> early_change(const Schedule& schedule) {
  for (int worker = 0; worker < schedule.workers; ++worker) {
    std::optional<Action> latest;  // of the window furthest on
    const Program& program = schedule.programs[worker];
    // Later repetitions are as the second, whose changes and backwards follow those of the first.
    auto left = static_cast<int64_t>(program.prologue.size() + 2 * program.period.size());
    for (ProgramCursor cursor(schedule, worker); left > 0; --left, cursor.advance()) {
      const Action& action = *cursor.peek();
      if (action.is_per_window()) {
        if (!latest || action.microbatch > latest->microbatch) latest = action;
      } else if (latest && action.kind != ActionKind::Forward &&
                 action.microbatch / schedule.window <= latest->microbatch) {
        return EarlyChange{*latest, action};
      }
    }
  }
  return std::nullopt;
}

bool splits_backward(const Schedule& schedule, int stage) {
  const auto is_half = [stage](const Action& action) {
    return action.kind == ActionKind::BackwardInput && action.stage == stage;
  };
  return std::ranges::any_of(schedule.placement, [&](const std::vector<int>& workers) {
    const Program& program = schedule.programs[static_cast<size_t>(workers[static_cast<size_t>(stage)])];
    return std::ranges::any_of(program.prologue, is_half) || std::ranges::any_of(program.period, is_half);
  });
}

Action backward_of(const Schedule& schedule, int pipeline, int stage, int64_t microbatch, ActionKind half) {
  const Action split{half, pipeline, stage, microbatch};
  const Program& program = schedule.programs[static_cast<size_t>(schedule.worker_of(split))];
  const auto repeats_to_it = [&](Action action) {
    const int64_t later = microbatch - action.microbatch;
    action.microbatch = microbatch;
    return action == split && later >= 0 && later % schedule.shift == 0;
  };
  const bool is_split = std::ranges::find(program.prologue, split) != program.prologue.end() ||
                        std::ranges::any_of(program.period, repeats_to_it);
  return is_split ? split : Action{ActionKind::Backward, pipeline, stage, microbatch};
}

std::vector<std::vector<int64_t>> most_in_flight(const Schedule& schedule) {
  std::vector<std::vector<int64_t>> held(static_cast<size_t>(schedule.pipelines),
                                         std::vector<int64_t>(static_cast<size_t>(schedule.stages)));
  auto most = held;
  const int64_t microbatches = representative_microbatches(schedule);
  for (int worker = 0; worker < schedule.workers; ++worker) {
    for (ProgramCursor cursor(schedule, worker, microbatches); cursor.peek(); cursor.advance()) {
      const Action& action = *cursor.peek();
      if (action.is_per_window()) continue;
      int64_t& count = held[action.pipeline][action.stage];
      if (action.kind == ActionKind::Forward) ++count;
      if (action.kind == ActionKind::Backward || action.kind == ActionKind::BackwardWeights) --count;
      most[action.pipeline][action.stage] = std::max(most[action.pipeline][action.stage], count);
    }
  }
  return most;
}

}  // namespace gyre
