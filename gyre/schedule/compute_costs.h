// The makespan of a schedule from its computation alone, by which builders compare orders.
#pragma once

#include "gyre/schedule/timeline.h"

namespace gyre {

// Messages and updates are free.
struct ComputeCosts {
  double forward = 1, backward = 2, backward_input = 1, backward_weights = 1;

  double duration(int /*worker*/, const Action& action) const {
    switch (action.kind) {
      case ActionKind::Forward:
        return forward;
      case ActionKind::Backward:
        return backward;
      case ActionKind::BackwardInput:
        return backward_input;
      case ActionKind::BackwardWeights:
        return backward_weights;
      default:
        return 0;
    }
  }
  static double arrival(MessageKind, int, int, int, double at) { return at; }
  static double latency(int, int) { return 0; }
  static double passing_on(MessageKind, int) { return 0; }
};

template <typename Costs>
double makespan(const Schedule& schedule, int64_t microbatches, Costs costs) {
  const auto ignore = [](int, const Action&, double, double) {};
  return Timeline(schedule, microbatches, costs, ignore).run();
}

}  // namespace gyre
