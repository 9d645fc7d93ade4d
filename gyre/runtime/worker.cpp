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
      analysis_(schedule(), shared.replicas, number) {
  for (int pipeline = 0; pipeline < schedule().pipelines; ++pipeline) {
    for (int stage = 0; stage < schedule().stages; ++stage) {
      if (schedule().worker_of(pipeline, stage) == number) states_[{pipeline, stage}];
    }
  }
  const Program& program = schedule().programs[number];
  for (const auto* actions : {&program.prologue, &program.period}) {
    for (const Action& action : *actions) {
      if (action.kind == ActionKind::Adopt) state_of(action).adopts = true;
    }
  }
  costs_.resize(schedule().stages);
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
  account(*action, started, done);
  if (done) {
    expected_version_.reset();
    cursor_.advance();
    return Step::Done;
  }
  // A drain was noticed: the program is shorter now, so there may be something else to do.
  return cursor_.limit() < limit ? Step::Done : Step::MustWait;
}

void Worker::account(const Action& action, std::chrono::steady_clock::time_point started, bool done) {
  const auto ended = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(ended - started).count();
  report_.busy_seconds += seconds;
  if (!done) return;
  ++report_.actions;
  ActionCost& cost = costs_[action.stage][action.kind];
  (cost.count++ == 0 ? cost.first_seconds : cost.seconds) += seconds;
  if (!shared_.segment.trace) return;
  const auto since_start = [&](auto time) { return std::chrono::duration<double>(time - segment_started_).count(); };
  report_.trace.push_back({action, since_start(started), since_start(ended)});
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
      return adopt(action);
  }
  return false;
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
    Channel<at::Tensor>& channel = *shared_.activations[action.pipeline][action.stage];
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

  WeightReader weights = replica.weights;
  InFlight in_flight;
  in_flight.version = checked_version(action, version_of(replica));
  at::Tensor output = replica.owner.layers.forward(weights->buffer.tensors, input, context, in_flight.saved);
  if (!last) state.sizes.output_bytes = static_cast<int64_t>(output.nbytes());
  if (last) {
    const double loss = output.item<double>();
    if (!std::isfinite(loss) && shared_.pipeline.options().max_skipped == 0) {
      throw Divergence(fmt::format("the loss of microbatch {} is {}; lower [optimizer] lr, or lengthen its warmup",
                                   microbatch, loss));
    }
    sink_.loss(microbatch, loss);
  } else {
    shared_.activations[action.pipeline][action.stage + 1]->send(action.microbatch, std::move(output));
  }
  if (schedule().forward_only) return true;

  if (shared_.pipeline.options().recompute) {
    in_flight.saved.clear();
    in_flight.input = std::move(input);
    in_flight.context = std::move(context);
    state.sizes.activation_bytes = static_cast<int64_t>(in_flight.input.nbytes());
  } else if (state.sizes.activation_bytes == 0) {
    state.sizes.activation_bytes = saved_bytes(in_flight.saved);
  }
  if (!reads_latest(shared_.pipeline.options().weights)) in_flight.stashed = std::move(weights);
  state.in_flight.emplace(action.microbatch, std::move(in_flight));
  state.peak_in_flight = std::max(state.peak_in_flight, static_cast<int64_t>(state.in_flight.size()));
  state.peak_weight_buffers = std::max(state.peak_weight_buffers, replica.owner.weights.live_buffers());
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
  const int64_t found = checked_version(action, version_of(replica));
  ++state_of(action).mismatch[reads_latest(shared_.pipeline.options().weights) ? found - microbatch.version : 0];

  const auto& tensors = weights->for_backward();
  if (microbatch.input.defined()) {
    replica.owner.layers.forward(tensors, std::exchange(microbatch.input, {}), microbatch.context, microbatch.saved);
  }
  at::Tensor grad_input;
  const bool split = action.kind == ActionKind::BackwardInput;
  if (split) {
    grad_input = replica.owner.layers.backward_input(tensors, std::move(grad_output), microbatch.saved);
    microbatch.stashed.reset();
  } else {
    const auto accumulators = replica.gradients.accumulators(action.microbatch / schedule().window);
    grad_input = replica.owner.layers.backward(tensors, std::move(grad_output), microbatch.saved, accumulators);
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
  checked_version(action, version_of(replica));
  auto entry = state_of(action).in_flight.find(action.microbatch);
  replica.owner.layers.backward_weights(entry->second.saved,
                                        replica.gradients.accumulators(action.microbatch / schedule().window));
  finish_gradient(action, entry->second);
  state_of(action).in_flight.erase(entry);
}

// All replicas' gradients of the window, summed in the order of pipelines, clipped and applied.
bool Worker::update(const Action& action) {
  if (!gather_gradient(action.stage, action.microbatch)) return false;
  const auto norm = gradient_norm(action);
  if (!norm) return false;
  apply_update(action, *norm);
  publish(action);
  sink_.updated(action.stage, shared_.segment.first_update + action.microbatch + 1,
                std::move(pending_.extract(action.stage).mapped().norms));
  return true;
}

// Whether the window's gradient is complete; then the sum is with the first pipeline that has a microbatch in it.
bool Worker::gather_gradient(int stage, int64_t window) {
  PendingUpdate& pending = pending_[stage];
  if (!pending.norms.empty()) return true;
  pending.gathered.resize(schedule().pipelines);
  bool complete = true;
  for (int p = 0; p < schedule().pipelines; ++p) {
    auto& gradient = pending.gathered[p];
    if (gradient || schedule().microbatches_in_window(p, window) == 0) continue;
    gradient = shared_.reductions[p][stage]->try_receive(window);
    complete &= gradient.has_value();
  }
  if (!complete) return false;

  ReducedGradient* sum = nullptr;
  for (int p = 0; p < schedule().pipelines; ++p) {
    auto& gradient = pending.gathered[p];
    if (!gradient) continue;
    if (sum == nullptr) {
      sum = &*gradient;
      continue;
    }
    sum->sum.flat.add_(gradient->sum.flat);
    if (p == schedule().pipeline_of(window * schedule().window)) sum->delay = gradient->delay;
    shared_.pipeline.replica(p, stage).gradients.give_back(std::move(gradient->sum));
    gradient.reset();
  }
  pending.norms = squared_norms(sum->sum.tensors);
  if (shared_.pipeline.options().clip_scope == ClipScope::Global) {
    shared_.norms.give(stage, shared_.segment.first_update + window + 1, pending.norms);
  }
  return true;
}

// What the gradient is clipped by, or left out for if it is not finite. Nothing while other stages' norms are missing.
std::optional<double> Worker::gradient_norm(const Action& action) {
  switch (shared_.pipeline.options().clip_scope) {
    case ClipScope::None:
    case ClipScope::Stage:
      return std::sqrt(combine(pending_.at(action.stage).norms));
    case ClipScope::Global:
      // A worker with several stages gives all their norms before it waits for the others'.
      for (int stage = 0; stage < schedule().stages; ++stage) {
        if (schedule().owner[stage] == number_ && stage != action.stage) gather_gradient(stage, action.microbatch);
      }
      return shared_.norms.try_take(shared_.segment.first_update + action.microbatch + 1);
  }
  return std::nullopt;
}

void Worker::apply_update(const Action& action, double norm) {
  StageOwner& owner = shared_.pipeline.owner(action.stage);
  const RuntimeOptions& options = shared_.pipeline.options();
  const int64_t window = action.microbatch;
  analysis_.track(action);
  if (owner.weights.version() != shared_.segment.first_update + window) {
    throw RunError(fmt::format("action {} found {} updates made before it", to_string(action, schedule().pipelines),
                               owner.weights.version() - shared_.segment.first_update));
  }
  // Replicas here that wait for no adoption change with the owner; they must not look like readers of the old version.
  for (auto& [place, state] : states_) {
    if (place.second == action.stage && !state.adopts)
      shared_.pipeline.replica(place.first, action.stage).weights.reset();
  }
  auto& gathered = pending_.at(action.stage).gathered;
  const auto source = std::find_if(gathered.begin(), gathered.end(), [](const auto& g) { return g.has_value(); });
  ReducedGradient gradient = std::move(**source);
  const int pipeline = static_cast<int>(source - gathered.begin());
  if (options.clip_scope != ClipScope::None) {
    const double factor = clip_factor(norm, options.clip);
    if (factor < 1) scale(gradient.sum.tensors, factor);
  }
  UpdateContext context;
  context.update = shared_.segment.first_update + window + 1;
  context.delay = gradient.delay;
  context.mean_delay = owner.mean_delay;
  context.learning_rate = options.learning_rate(context.update);
  const auto masters = owner.weights.begin_update();
  if (std::isfinite(norm)) {
    owner.skipped_in_a_row = 0;
    owner.optimizer->step(masters, gradient.sum.tensors, context);
  } else {
    count_skipped(action);
  }
  owner.weights.finish_update();
  shared_.pipeline.replica(pipeline, action.stage).gradients.give_back(std::move(gradient.sum));
}

// An update whose gradient is not finite makes a version like the one before: schedules, delays and the other stages'
// updates stay what they are, and neither weights nor moments nor bases hear of it.
void Worker::count_skipped(const Action& action) {
  StageOwner& owner = shared_.pipeline.owner(action.stage);
  ++state_of(action).skipped;
  if (++owner.skipped_in_a_row <= shared_.pipeline.options().max_skipped) return;
  const auto& norms = pending_.at(action.stage).norms;
  const auto bad = std::find_if(norms.begin(), norms.end(), [](double n) { return !std::isfinite(n); });
  const std::string what = bad == norms.end()
                               ? "the norm of the model's gradient"
                               : fmt::format("the gradient of '{}'", owner.weights.specs()[bad - norms.begin()].name);
  throw Divergence(
      fmt::format("update {} of stage {}: {} is not finite{}; lower [optimizer] lr, or lengthen its warmup",
                  shared_.segment.first_update + action.microbatch + 1, action.stage, what,
                  owner.skipped_in_a_row > 1 ? fmt::format(", {} times in a row", owner.skipped_in_a_row) : ""));
}

// The new version goes to every replica: at once to those here, by message to those that adopt it at their own time.
void Worker::publish(const Action& action) {
  const WeightReader version = shared_.pipeline.owner(action.stage).weights.read();
  for (int p = 0; p < schedule().pipelines; ++p) {
    const auto here = states_.find({p, action.stage});
    if (here != states_.end() && !here->second.adopts) {
      shared_.pipeline.replica(p, action.stage).weights = version;
    } else {
      shared_.versions[p][action.stage]->send(action.microbatch, version);
    }
  }
}

bool Worker::adopt(const Action& action) {
  auto version = shared_.versions[action.pipeline][action.stage]->try_receive(action.microbatch);
  if (!version) return false;
  Replica& replica = replica_of(action);
  checked_version(action, version_of(replica));
  replica.weights = std::move(*version);
  return true;
}

// The replica's last gradient of a window sends their sum to the owner.
void Worker::finish_gradient(const Action& action, const InFlight& microbatch) {
  const int64_t window = action.microbatch / schedule().window;
  const int64_t delay = delay_of(schedule(), action.microbatch, microbatch.version);
  StageState& state = state_of(action);
  ++state.delay[delay];
  state.first_delay.emplace(window, delay);
  GradientWindows& gradients = replica_of(action).gradients;
  if (gradients.count(window) < schedule().microbatches_in_window(action.pipeline, window)) return;
  shared_.reductions[action.pipeline][action.stage]->send(
      window, {gradients.release(window), state.first_delay.extract(window).mapped()});
}

WeightReader Worker::backward_weights_version(const Replica& replica, const InFlight& microbatch) const {
  return microbatch.stashed ? microbatch.stashed : replica.weights;
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
      return "the gradients of its replicas, or the norms of the other stages";
    case ActionKind::Adopt:
      return fmt::format("update {} of stage {} by worker {}", action.microbatch, action.stage,
                         schedule().owner[action.stage]);
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

std::string Worker::action() const {
  const std::lock_guard lock(status_mutex_);
  return next_ ? to_string(*next_, schedule().pipelines) : "its end";
}

void Worker::contribute(SegmentReport& report) const {
  for (size_t stage = 0; stage < costs_.size(); ++stage) {
    for (const auto& [kind, cost] : costs_[stage]) {
      ActionCost& all = report.costs[stage][kind];
      // Of several replicas' first actions all but one count as the others do.
      (all.count == 0 ? all.first_seconds : all.seconds) += cost.first_seconds;
      all.count += cost.count;
      all.seconds += cost.seconds;
    }
  }
  for (const auto& [place, state] : states_) {
    const int stage = place.second;
    report.sizes[stage].activation_bytes = std::max(report.sizes[stage].activation_bytes, state.sizes.activation_bytes);
    report.sizes[stage].output_bytes = std::max(report.sizes[stage].output_bytes, state.sizes.output_bytes);
    for (const auto& [delay, count] : state.delay) report.delay[stage][delay] += count;
    for (const auto& [mismatch, count] : state.mismatch) report.mismatch[stage][mismatch] += count;
    report.skipped[stage] += state.skipped;
    report.peak_in_flight[stage] = std::max(report.peak_in_flight[stage], state.peak_in_flight);
    report.peak_weight_buffers[stage] = std::max(report.peak_weight_buffers[stage], state.peak_weight_buffers);
  }
}

}  // namespace gyre
