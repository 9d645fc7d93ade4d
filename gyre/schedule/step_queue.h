// Steps of a timeline's workers that have to be taken in the order of time.
#pragma once

#include <cstdint>
#include <queue>
#include <tuple>
#include <vector>

#include "gyre/schedule/action.h"

namespace gyre {

enum class Step { BeginAction, EndAction, SendTiedSum };

struct PlannedStep {
  Step step;
  int worker;
  Action action;
  double at;
  int64_t number = 0;  // in the order in which they were planned
};

class StepQueue {
 public:
  bool empty() const { return steps_.empty(); }
  void plan(PlannedStep step) {
    step.number = planned_++;
    steps_.push(step);
  }
  // The earliest; of several at one time, the one that was planned first.
  PlannedStep take() {
    const PlannedStep step = steps_.top();
    steps_.pop();
    return step;
  }

 private:
  struct IsLater {
    bool operator()(const PlannedStep& a, const PlannedStep& b) const {
      return std::tie(a.at, a.number) > std::tie(b.at, b.number);
    }
  };
  std::priority_queue<PlannedStep, std::vector<PlannedStep>, IsLater> steps_;
  int64_t planned_ = 0;
};

}  // namespace gyre
