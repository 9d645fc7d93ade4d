#include "gyre/runtime/worker.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/optim/clipping.h"

namespace gyre {

Worker::Worker(int number, SegmentShared& shared, WorkerSink sink)
    : number_(number),
      shared_(shared),
      sink_(std::move(sink)),
      cursor_(schedule(), number, shared.segment.microbatches),
      analysis_(schedule(), number) {
  for (int pipeline = 0; pipeline < schedule().pipelines; ++pipeline) {
    for (int stage = 0; stage < schedule().stages; ++stage) {
      if (schedule().worker_of(pipeline, stage) == number) states_[{pipeline, stage}];
    }
  }
}

Worker::Step Worker::try_step() {
  const std::optional<Action> action = cursor_.peek();
  {
    const std::lock_guard lock(status_mutex_);
    next_ = action;
  }
  if (!action) return Step::Finished;
  const int64_t limit = cursor_.limit();
  const auto started = std::chrono::steady_clock::now();
  const bool done = perform(*action);
  report_.busy_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  if (done) {
    ++report_.actions;
    expected_version_.reset();
    cursor_.advance();
    return Step::Done;
  }
  // A drain was noticed: the program is shorter now, so there may be something else to do.
  return cursor_.limit() < limit ? Step::Done : Step::MustWait;
}

bool Worker::perform(const Action& action) {
  switch (action.kind) {
    case ActionKind::Forward:
      return forward(action);
    case ActionKind::Backward:
    case ActionKind::BackwardInput:
      return backward(action);
    case ActionKind::BackwardWeights:
      backward_weights(action);
      return true;
    case ActionKind::Update:
      return update(action);
    case ActionKind::Adopt:
      break;
  }
  throw RunError(fmt::format("action {}: this executor hosts one pipeline, which has nothing to adopt",
                             to_string(action, schedule().pipelines)));
}

bool Worker::forward(const Action& action) {
  Replica& replica = replica_of(action);
  StageState& state = state_of(action);
  const Segment& segment = shared_.segment;
  const int64_t microbatch = segment.first_microbatch + action.microbatch;
  const bool first = action.stage == 0;
  const bool last = action.stage == schedule().stages - 1;

  if (!last && !shared_.activations[action.pipeline][action.stage + 1]->has_room()) return false;
  at::Tensor input;
  if (first) {
    if (!shared_.intake.admit(action.microbatch)) {
      restrict_to(shared_.intake.limit());
      return false;
    }
  } else {
    Channel& channel = *shared_.activations[action.pipeline][action.stage];
    auto received = channel.try_receive(action.microbatch);
    if (!received) {
      const auto limit = channel.closed_at();
      if (limit && action.microbatch >= *limit) restrict_to(*limit);
      return false;
    }
    input = std::move(*received);
  }

  LayerContext context;
  context.training = !schedule().forward_only;
  context.seed = shared_.pipeline.options().seed;
  context.microbatch = microbatch;
  if (first || last) {
    Batch batch = segment.batches->batch(microbatch);
    if (first) input = std::move(batch.inputs);
    if (last) context.targets = std::move(batch.targets);
  }

  WeightReader weights = replica.weights.read();
  InFlight in_flight;
  in_flight.version = checked_version(action, weights->number - segment.first_update);
  at::Tensor output = replica.layers.forward(weights->buffer.tensors, input, context, in_flight.saved);
  if (last) {
    const double loss = output.item<double>();
    if (!std::isfinite(loss)) {
      throw RunError(fmt::format("the loss of microbatch {} is {}; lower [optimizer] lr, or lengthen its warmup",
                                 microbatch, loss));
    }
    sink_.loss(microbatch, loss);
  } else {
    shared_.activations[action.pipeline][action.stage + 1]->send(action.microbatch, std::move(output));
  }
  if (schedule().forward_only) return true;

  if (shared_.pipeline.options().weights == WeightPolicy::Stash) in_flight.stashed = std::move(weights);
  state.in_flight.emplace(action.microbatch, std::move(in_flight));
  state.peak_in_flight = std::max(state.peak_in_flight, static_cast<int64_t>(state.in_flight.size()));
  state.peak_weight_buffers = std::max(state.peak_weight_buffers, replica.weights.live_buffers());
  return true;
}

// B, or its input half I.
bool Worker::backward(const Action& action) {
  Replica& replica = replica_of(action);
  at::Tensor grad_output;
  if (action.stage == schedule().stages - 1) {
    // The loss of an update is the mean over its window.
    grad_output = at::scalar_tensor(1.0 / static_cast<double>(schedule().window));
  } else {
    auto received = shared_.gradients[action.pipeline][action.stage]->try_receive(action.microbatch);
    if (!received) return false;
    grad_output = std::move(*received);
  }

  auto entry = state_of(action).in_flight.find(action.microbatch);
  InFlight& microbatch = entry->second;
  const WeightReader weights = backward_weights_version(replica, microbatch);
  const int64_t found = checked_version(action, replica.weights.version() - shared_.segment.first_update);
  const bool reads_latest = shared_.pipeline.options().weights == WeightPolicy::Latest;
  ++state_of(action).mismatch[reads_latest ? found - microbatch.version : 0];

  at::Tensor grad_input;
  const auto& tensors = weights->buffer.tensors;
  const bool split = action.kind == ActionKind::BackwardInput;
  if (split) {
    grad_input = replica.layers.backward_input(tensors, std::move(grad_output), microbatch.saved);
    microbatch.split = true;
    microbatch.stashed.reset();
  } else {
    const auto accumulators = replica.gradients.accumulators(action.microbatch / schedule().window);
    grad_input = replica.layers.backward(tensors, std::move(grad_output), microbatch.saved, accumulators);
  }
  if (action.stage > 0) {
    shared_.gradients[action.pipeline][action.stage - 1]->send(action.microbatch, std::move(grad_input));
  }
  if (!split) {
    finish_gradient(action, microbatch);
    state_of(action).in_flight.erase(entry);
  }
  return true;
}

void Worker::backward_weights(const Action& action) {
  Replica& replica = replica_of(action);
  checked_version(action, replica.weights.version() - shared_.segment.first_update);
  auto entry = state_of(action).in_flight.find(action.microbatch);
  replica.layers.backward_weights(entry->second.saved,
                                  replica.gradients.accumulators(action.microbatch / schedule().window));
  finish_gradient(action, entry->second);
  state_of(action).in_flight.erase(entry);
}

bool Worker::update(const Action& action) {
  Replica& replica = replica_of(action);
  const int64_t window = action.microbatch;
  const int64_t update_number = shared_.segment.first_update + window + 1;
  if (own_norms_.empty()) {
    if (replica.gradients.contributions(window) != schedule().window) {
      throw RunError(fmt::format("update {}: {} of {} gradients are there", to_string(action, schedule().pipelines),
                                 replica.gradients.contributions(window), schedule().window));
    }
    own_norms_ = squared_norms(replica.gradients.accumulators(window));
    for (size_t i = 0; i < own_norms_.size(); ++i) {
      if (std::isfinite(own_norms_[i])) continue;
      throw RunError(
          fmt::format("update {} of stage {}: the gradient of '{}' is not finite; lower [optimizer] lr, or "
                      "lengthen its warmup",
                      update_number, action.stage, replica.weights.specs()[i].name));
    }
    if (shared_.pipeline.options().clip_scope == ClipScope::Global) {
      shared_.norms.give(action.stage, update_number, own_norms_);
    }
  }
  double norm = 0;
  switch (shared_.pipeline.options().clip_scope) {
    case ClipScope::None:
      break;
    case ClipScope::Stage:
      norm = std::sqrt(combine(own_norms_));
      break;
    case ClipScope::Global: {
      const auto global = shared_.norms.try_take(update_number);
      if (!global) return false;
      norm = *global;
      break;
    }
  }
  apply_update(action, norm);
  sink_.updated(action.stage, update_number, std::exchange(own_norms_, {}));
  return true;
}

void Worker::apply_update(const Action& action, double norm_for_clipping) {
  Replica& replica = replica_of(action);
  const RuntimeOptions& options = shared_.pipeline.options();
  const int64_t window = action.microbatch;
  checked_version(action, replica.weights.version() - shared_.segment.first_update);

  const auto gradients = replica.gradients.accumulators(window);
  if (options.clip_scope != ClipScope::None) {
    const double factor = clip_factor(norm_for_clipping, options.clip);
    if (factor < 1) scale(gradients, factor);
  }
  UpdateContext context;
  context.stage = action.stage;
  context.stages = schedule().stages;
  context.update = shared_.segment.first_update + window + 1;
  context.delay = state_of(action).first_delay.extract(window).mapped();
  context.learning_rate = options.learning_rate(context.update);
  replica.optimizer->step(replica.weights.begin_update(), gradients, context);
  replica.weights.finish_update();
  replica.gradients.recycle(window);
}

void Worker::finish_gradient(const Action& action, const InFlight& microbatch) {
  const int64_t window = action.microbatch / schedule().window;
  const int64_t delay = delay_of(schedule(), action.microbatch, microbatch.version);
  StageState& state = state_of(action);
  replica_of(action).gradients.count(window);
  ++state.delay[delay];
  state.first_delay.emplace(window, delay);
}

WeightReader Worker::backward_weights_version(Replica& replica, const InFlight& microbatch) const {
  return microbatch.stashed ? microbatch.stashed : replica.weights.read();
}

// Everything at or past `limit` is left out, here and downstream.
void Worker::restrict_to(int64_t limit) {
  if (limit >= cursor_.limit()) return;
  cursor_.restrict_to(limit);
  for (const auto& [place, state] : states_) {
    const auto [pipeline, stage] = place;
    if (stage + 1 < schedule().stages) shared_.activations[pipeline][stage + 1]->close(limit);
  }
}

// The version that the weights have must be the one that the schedule's analysis says, or the run is not the one that
// was simulated. Both count from the segment's start.
int64_t Worker::checked_version(const Action& action, int64_t found) {
  if (!expected_version_) expected_version_ = analysis_.track(action);
  if (found != *expected_version_) {
    throw RunError(fmt::format("action {} found weight version {} where the schedule's analysis says {}",
                               to_string(action, schedule().pipelines), found, *expected_version_));
  }
  return found;
}

std::string Worker::needs(const Action& action) const {
  const int pipelines = schedule().pipelines;
  const auto from = [&](ActionKind kind, int stage) {
    return fmt::format("{} from worker {}",
                       to_string(Action{kind, action.pipeline, stage, action.microbatch}, pipelines),
                       schedule().worker_of(action.pipeline, stage));
  };
  switch (action.kind) {
    case ActionKind::Forward:
      return action.stage == 0 ? "room to send its output"
                               : "the activation of " + from(ActionKind::Forward, action.stage - 1);
    case ActionKind::Backward:
    case ActionKind::BackwardInput:
      return action.stage + 1 == schedule().stages ? "nothing"
                                                   : "the gradient of " + from(ActionKind::Backward, action.stage + 1);
    case ActionKind::Update:
      return "the gradient norms of the other stages";
    default:
      return "nothing";
  }
}

std::string Worker::status() const {
  const std::lock_guard lock(status_mutex_);
  if (!next_) return fmt::format("worker {} has finished", number_);
  return fmt::format("worker {} at {}, waiting for {}", number_, to_string(*next_, schedule().pipelines),
                     needs(*next_));
}

void Worker::contribute(SegmentReport& report) const {
  for (const auto& [place, state] : states_) {
    const int stage = place.second;
    for (const auto& [delay, count] : state.delay) report.delay[stage][delay] += count;
    for (const auto& [mismatch, count] : state.mismatch) report.mismatch[stage][mismatch] += count;
    report.peak_in_flight[stage] = std::max(report.peak_in_flight[stage], state.peak_in_flight);
    report.peak_weight_buffers[stage] = std::max(report.peak_weight_buffers[stage], state.peak_weight_buffers);
  }
}

}  // namespace gyre
