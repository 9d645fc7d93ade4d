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

// With flushes all repetitions take the same time. Without, the chain of waits that limits the rate in the end may be
// longer than others at first, and if it is slower by a small part, it may take many microbatches until others wait for
// it.
int64_t most_microbatches(const Schedule& schedule) {
  const int64_t many =
      schedule.has_flush() ? 8LL * schedule.stages : 64LL * std::max(schedule.stages, schedule.workers);
  return std::max<int64_t>(8, (many + schedule.shift - 1) / schedule.shift) * schedule.shift;
}

}  // namespace

SteadyState steady_state(const Schedule& schedule, const CostModel& costs, const SimulationOptions& options) {
  SteadyState state;
  RepetitionTimes repetitions(schedule);
  SimulationOptions run = options;
  run.microbatches = most_microbatches(schedule);
  run.repetitions = &repetitions;
  state.simulation = simulate(schedule, costs, run);
  if (const std::optional<double> repetition = repetitions.steady()) {
    state.seconds = *repetition / static_cast<double>(schedule.shift);
  } else {  // what the second half of the microbatches adds
    const int64_t half = run.microbatches / 2 / schedule.shift * schedule.shift;
    run.microbatches -= half;
    run.repetitions = nullptr;
    const double first = simulate(schedule, costs, run).makespan;
    state.seconds = (state.simulation.makespan - first) / static_cast<double>(half);
  }
  const auto microbatches = static_cast<double>(state.simulation.microbatches);
  state.fill = std::max(0.0, state.simulation.makespan - microbatches * state.seconds);
  for (const double busy : state.simulation.busy) {
    state.busy += busy / microbatches / static_cast<double>(state.simulation.busy.size());
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
