#include "gyre/plan/steady_state.h"

#include <algorithm>

namespace gyre {
namespace {

// Stages of equal cost, on workers of the cluster's mean speed.
CostModel balanced(const Schedule& schedule, const CostModel& costs, const WorkerPlaces* places) {
  double speed = 1;
  if (places != nullptr) {
    speed = 0;
    for (int worker = 0; worker < schedule.workers; ++worker) speed += places->speed(worker) / schedule.workers;
  }
  StageCost mean;
  mean.forward = mean.backward = mean.backward_input = mean.backward_weights = 0;
  const double part = 1 / (speed * static_cast<double>(costs.stages.size()));
  for (const StageCost& stage : costs.stages) {
    mean.forward += part * stage.forward;
    mean.backward += part * stage.backward;
    mean.backward_input += part * stage.backward_input;
    mean.backward_weights += part * stage.backward_weights;
    mean.update += part * stage.update;
    mean.adopt += part * stage.adopt;
  }
  CostModel model;
  model.tokens_per_microbatch = costs.tokens_per_microbatch;
  model.stages = {mean};
  return model;
}

}  // namespace

SteadyState steady_state(const Schedule& schedule, const CostModel& costs, const SimulationOptions& options) {
  SteadyState state;
  // The steady state is the difference between a run of n microbatches and one of 2n. With flushes all repetitions take
  // the same time. Without, the chain of waits that limits the rate in the end may be longer than others at first: if
  // it is slower by a small part, this shows only after many microbatches.
  const int64_t several =
      schedule.has_flush() ? 4LL * schedule.stages : 32LL * std::max(schedule.stages, schedule.workers);
  state.microbatches = std::max<int64_t>(4 * schedule.shift, several / schedule.window * schedule.window);
  SimulationOptions run_options = options;
  run_options.microbatches = state.microbatches;
  const Simulation once = simulate(schedule, costs, run_options);
  run_options.microbatches *= 2;
  state.simulation = simulate(schedule, costs, run_options);
  state.seconds = state.simulation.makespan - once.makespan;
  state.fill = std::max(0.0, once.makespan - state.seconds);
  for (size_t worker = 0; worker < once.busy.size(); ++worker) {
    state.busy += (state.simulation.busy[worker] - once.busy[worker]) / static_cast<double>(once.busy.size());
  }
  return state;
}

Losses find_losses(const Schedule& schedule, const CostModel& costs, const SimulationOptions& options,
                   const SteadyState& found) {
  SimulationOptions without = options;
  without.links = false;
  without.free_messages = FreeMessages::OfUpdates;
  const double no_reductions = steady_state(schedule, costs, without).seconds;
  without.free_messages = FreeMessages::All;
  const double no_messages = steady_state(schedule, costs, without).seconds;
  const SteadyState balanced_state = steady_state(schedule, balanced(schedule, costs, options.places), {});
  // One wait may hide another, so a difference can be negative, but no cost makes a run faster: it counts as 0.
  const auto share = [&](double more) { return std::max(0.0, more) / found.seconds; };
  return {share(balanced_state.seconds - balanced_state.busy), share(no_messages - balanced_state.seconds),
          share(no_reductions - no_messages), share(found.seconds - no_reductions)};
}

}  // namespace gyre
