// Random schedules and costs, for tests of properties that hold for all.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "gyre/schedule/schedule.h"
#include "gyre/schedule/validate.h"
#include "gyre/simulate/cost_model.h"

namespace gyre {

class RandomSchedules {
 public:
  explicit RandomSchedules(unsigned seed) : random_(seed) {}

  int between(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  // A valid one. Each repetition does all actions in a random order that meets what each of them needs.
  Schedule schedule() {
    Schedule s;
    s.name = "random";
    s.tied = between(0, 3) > 0;
    s.stages = between(2, 3);
    s.pipelines = between(1, 3);
    s.workers = between(2, 4);
    s.window = s.pipelines * between(1, 2);
    s.shift = s.window * between(1, 3);
    const auto workers = [&] {
      std::vector<int> all(static_cast<size_t>(s.stages));
      for (int& worker : all) worker = between(0, s.workers - 1);
      return all;
    };
    s.owner = {workers()};
    for (int pipeline = 0; pipeline < s.pipelines; ++pipeline) {
      s.placement.push_back(between(0, 2) == 0 ? s.owner[0] : workers());
    }
    s.programs.resize(static_cast<size_t>(s.workers));
    std::vector<Action> left = all_actions(s);
    std::set<Done> done;
    while (!left.empty()) {
      std::vector<size_t> ready;
      for (size_t i = 0; i < left.size(); ++i) {
        if (can_follow(s, left[i], done)) ready.push_back(i);
      }
      const auto chosen = left.begin() + static_cast<ptrdiff_t>(ready[random_() % ready.size()]);
      s.programs[static_cast<size_t>(s.worker_of(*chosen))].period.push_back(*chosen);
      done.insert(key(*chosen));
      left.erase(chosen);
    }
    validate(s);
    return s;
  }

  CostModel costs(int stages) {
    CostModel costs = uniform_costs(2);
    costs.link = {.latency = draw(0, 3), .bandwidth = draw(0.5, 10)};
    costs.stages.resize(static_cast<size_t>(stages), costs.stages[0]);
    for (StageCost& stage : costs.stages) {
      for (double* time : {&stage.forward, &stage.backward, &stage.backward_input, &stage.backward_weights,
                           &stage.update, &stage.adopt}) {
        *time = draw(0.1, 3);
      }
      for (int64_t* bytes : {&stage.output_bytes, &stage.weight_bytes, &stage.gradient_bytes, &stage.tied_bytes}) {
        *bytes = between(0, 12);
      }
    }
    return costs;
  }

 private:
  using Done = std::tuple<ActionKind, int, int, int64_t>;
  static Done key(const Action& action) { return {action.kind, action.pipeline, action.stage, action.microbatch}; }
  double draw(double least, double most) { return std::uniform_real_distribution<double>(least, most)(random_); }

  std::vector<Action> all_actions(const Schedule& s) {
    std::vector<Action> all;
    for (int stage = 0; stage < s.stages; ++stage) {
      for (int64_t window = 0; window < s.shift / s.window; ++window)
        all.push_back({ActionKind::Update, 0, stage, window});
      for (int pipeline = 0; pipeline < s.pipelines; ++pipeline) {
        const bool splits = between(0, 1) == 0;
        for (int64_t m = pipeline; m < s.shift; m += s.pipelines) {
          all.push_back({ActionKind::Forward, pipeline, stage, m});
          all.push_back({splits ? ActionKind::BackwardInput : ActionKind::Backward, pipeline, stage, m});
          if (splits) all.push_back({ActionKind::BackwardWeights, pipeline, stage, m});
        }
        for (int64_t window = 0; window < s.shift / s.window && s.placement[pipeline] != s.owner[0]; ++window) {
          all.push_back({ActionKind::Adopt, pipeline, stage, window});
        }
      }
    }
    return all;
  }

  static bool can_follow(const Schedule& s, const Action& action, const std::set<Done>& done) {
    const auto& [kind, pipeline, stage, number] = action;
    const auto is_done = [&](ActionKind what, int p, int at, int64_t m) { return done.contains({what, p, at, m}); };
    const int64_t before = number - (action.is_per_window() ? 1 : s.pipelines);
    if (before >= 0 && !is_done(kind, pipeline, stage, before)) return false;
    const auto has_gradients = [&](int at) {
      for (int64_t m = action.microbatch * s.window; m < (action.microbatch + 1) * s.window; ++m) {
        const int p = s.pipeline_of(m);
        if (!is_done(ActionKind::Backward, p, at, m) && !is_done(ActionKind::BackwardWeights, p, at, m)) return false;
      }
      return true;
    };
    switch (kind) {
      case ActionKind::Forward:
        return stage == 0 || is_done(ActionKind::Forward, pipeline, stage - 1, number);
      case ActionKind::Backward:
      case ActionKind::BackwardInput:
        return is_done(ActionKind::Forward, pipeline, stage, number) &&
               (stage == s.stages - 1 || is_done(ActionKind::Backward, pipeline, stage + 1, number) ||
                is_done(ActionKind::BackwardInput, pipeline, stage + 1, number));
      case ActionKind::BackwardWeights:
        return is_done(ActionKind::BackwardInput, pipeline, stage, number);
      case ActionKind::Update:
        return has_gradients(stage) && (!s.tied || stage > 0 || has_gradients(s.stages - 1));
      case ActionKind::Adopt:
        return is_done(ActionKind::Update, 0, stage, number);
    }
    return false;
  }

  std::mt19937 random_;
};

}  // namespace gyre
