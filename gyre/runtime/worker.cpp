#include "gyre/runtime/worker.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "gyre/core/error.h"

namespace gyre {
namespace {

constexpr int64_t kFirstVersion = -1;  // the number of its message; the others have their window's

// In how many parts gradients of the stages hosted by a worker travel.
std::map<int, int64_t> gradient_parts(const WorkerState& state, int64_t part) {
  std::map<int, int64_t> parts;
  for (const auto& [place, replica] : state.replicas) {
    parts[place.second] = GradientChain::parts_of(flat_elements(replica.layers.parameters()), part);
  }
  return parts;
}

// A version as the stage's layers read it, with the tied weight if they read one.
class ReadWeights {
 public:
  ReadWeights(const Stage& layers, const WeightView& own, const at::Tensor* tied)
      : all_(tied == nullptr ? std::vector<at::Tensor>() : layers.with_tied(own.tensors(), *tied)),
        view_(tied == nullptr ? own : WeightView(all_, own.version())) {}
  ReadWeights(const ReadWeights&) = delete;
  ReadWeights& operator=(const ReadWeights&) = delete;
  const WeightView& view() const { return view_; }

 private:
  std::vector<at::Tensor> all_;
  WeightView view_;
};

}  // namespace

Worker::Worker(WorkerState& state, const RuntimeOptions& options, const Segment& segment, const ReplicaNumbers& numbers,
               Transport& transport)
    : state_(state),
      options_(options),
      segment_(segment),
      links_(state.number, schedule(), gradient_parts(state, options.reduction_part),
             options.clip_scope == ClipScope::Global, transport),
      chains_(schedule()),
      lends_tied_(!reads_latest(options.weights) && !schedule().has_flush()),
      cursor_(schedule(), state.number, segment.microbatches),
      analysis_(schedule(), numbers, state.number) {
  const DeviceEvent before = DeviceEvent::record(state.device);
  const StreamScope scope(state.stream);
  before.block(state.device);
  seen_.costs.resize(schedule().stages);
  norms_.resize(links_.norm_sums.size());
  for (auto& [place, links] : links_.replicas) {
    RunningReplica& running = replicas_[place];
    running.replica = &state_.replicas.at(place);
    running.replica->weights.reset();
    running.links = &links;
    const auto& specs = running.replica->layers.parameters();
    running.shards = cut_into_shards(specs, schedule().shards());
    running.chain.emplace(links, state_.device, flat_elements(specs), options_.reduction_part, running.shards);
    running.arriving.resize(links.versions.size());
    running.seen.stage = place.second;
  }
  for (auto& [stage, links] : links_.owners) {
    RunningOwner& running = owners_[stage];
    running.owner = &state_.owners.at(stage);
    running.links = &links;
    running.seen.stage = stage;
    running.owner->weights.begin_segment();
    publish(running, kFirstVersion);
  }
}

Worker::Step Worker::try_step() {
  const StreamScope scope(state_.stream);
  // What others wait for, whatever this worker's own program waits for.
  served_ = false;
  heed_control();
  pass_on_gradients();
  gather_gradients();
  sum_norms();
  const std::optional<Action> action = cursor_.peek();
  {
    const std::lock_guard lock(status_mutex_);
    next_ = action;
  }
  if (!action) return report_end() ? Step::Finished : Step::MustWait;
  const auto started = std::chrono::steady_clock::now();
  const bool done = perform(*action);
  account(*action, started, done);
  if (!done) return served_ ? Step::Done : Step::MustWait;
  expected_version_.reset();
  cursor_.advance();
  return Step::Done;
}

void Worker::account(const Action& action, std::chrono::steady_clock::time_point started, bool done) {
  const auto ended = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(ended - started).count();
  seen_.worker.busy_seconds += seconds;
  if (!done) return;
  ++seen_.worker.actions;
  ActionCost& cost = seen_.costs[action.stage][action.kind];
  (cost.count++ == 0 ? cost.first_seconds : cost.seconds) += seconds;
  if (!segment_.trace) return;
  const auto since_start = [&](auto time) { return std::chrono::duration<double>(time - segment_.started).count(); };
  TimedAction timed{action, since_start(started), since_start(ended), {}};
  if (const auto came = std::exchange(input_came_, {})) timed.came = since_start(*came);
  seen_.worker.trace.push_back(std::move(timed));
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
  RunningReplica& here = running(action);
  const bool has_room = is_last(action) ? can_report_loss(action) : here.links->outputs->has_room();
  if (!has_room || !has_first_version(here)) return false;
  auto input = receive_input(action);
  if (!input) return false;

  InFlight in_flight;
  in_flight.version = checked_version(action, version_of(here));
  in_flight.tied = here.tied;
  const Stage& layers = here.replica->layers;
  const ReadWeights weights(layers, here.replica->weights->for_forward(), here.tied ? &here.tied->weight : nullptr);
  at::Tensor output = layers.forward(weights.view(), input->tensor, input->context, in_flight.saved);
  if (!is_last(action)) {
    send_output(action, std::move(output), input->first_version);
  } else if (schedule().forward_only) {
    report_loss(action, std::move(output));
  } else {
    in_flight.loss = std::move(output);
  }
  if (!schedule().forward_only) keep(action, std::move(in_flight), std::move(*input));
  return true;
}

// What the forward reads, and the context of its layers. Nothing while it has not come, or may not be taken in.
std::optional<Worker::Input> Worker::receive_input(const Action& action) {
  RunningReplica& here = running(action);
  Input input;
  if (action.stage > 0) {
    if (!here.input) here.input = arrived_on(state_.device, here.links->inputs->try_receive(action.microbatch));
    if (!here.input) return std::nullopt;
    if (schedule().tied) input.first_version = static_cast<int64_t>(here.input->values[0]);
  } else {
    if (holding_) return std::nullopt;
    admitted_ = std::max(admitted_, action.microbatch + 1);
    input.first_version = here.replica->weights->number;
    if (here.links->tied_weights) send_tied_weight(here);
  }
  if (here.links->tied_reads && !take_tied_weight(here, input.first_version)) return std::nullopt;
  if (here.input) {
    input_came_ = here.input->came;
    input.tensor = std::move(here.input->tensors[0]);
    here.input.reset();
  }
  LayerContext& context = input.context;
  context.training = context.loss_in_backward = !schedule().forward_only;
  context.seed = options_.seed;
  context.microbatch = segment_.first_microbatch + action.microbatch;
  if (action.stage == 0 || is_last(action)) {
    Batch batch = segment_.batches->batch(context.microbatch);
    if (action.stage == 0) input.tensor = on_device(batch.inputs, state_.device);
    if (is_last(action)) context.targets = batch.targets;  // on the host: the head takes what it needs
  }
  return input;
}

void Worker::send_output(const Action& action, at::Tensor output, int64_t first_version) {
  RunningReplica& here = running(action);
  here.seen.sizes.output_bytes = static_cast<int64_t>(output.nbytes());
  Message message{action.microbatch, {std::move(output)}, {}, {}};
  if (schedule().tied) message.values = {static_cast<double>(first_version)};
  send_from(state_.device, *here.links->outputs, std::move(message));
}

// By the last stage's backward, or by its forward where there is none.
bool Worker::can_report_loss(const Action& action) const {
  const bool reports = is_last(action) && (action.kind != ActionKind::Forward || schedule().forward_only);
  return !reports || links_.reports->has_room();
}

void Worker::report_loss(const Action& action, at::Tensor loss) {
  send_from(state_.device, *links_.reports, to_message(LossReport{action.microbatch, std::move(loss)}));
}

// Keeps what the backward needs.
void Worker::keep(const Action& action, InFlight in_flight, Input input) {
  RunningReplica& here = running(action);
  StageSizes& sizes = here.seen.sizes;
  if (options_.recompute) {
    in_flight.saved.clear();
    in_flight.input = std::move(input.tensor);
    in_flight.context = std::move(input.context);
    sizes.activation_bytes = static_cast<int64_t>(in_flight.input.nbytes());
  } else if (sizes.activation_bytes == 0) {
    sizes.activation_bytes = saved_bytes(in_flight.saved);
  }
  if (!reads_latest(options_.weights)) in_flight.stashed = here.replica->weights;
  here.in_flight.emplace(action.microbatch, std::move(in_flight));
  here.seen.peak_in_flight = std::max(here.seen.peak_in_flight, static_cast<int64_t>(here.in_flight.size()));
}

// B, or its input half I.
bool Worker::backward(const Action& action) {
  if (!can_report_loss(action)) return false;
  RunningReplica& here = running(action);
  auto grad_output = receive_grad_output(action);
  if (!grad_output) return false;

  const auto entry = here.in_flight.find(action.microbatch);
  InFlight& microbatch = entry->second;
  const WeightReader weights = microbatch.stashed ? microbatch.stashed : here.replica->weights;
  const int64_t found = checked_version(action, version_of(here));
  ++here.seen.mismatch[reads_latest(options_.weights) ? found - microbatch.version : 0];

  const Stage& layers = here.replica->layers;
  const ReadWeights read(layers, weights->for_backward(), microbatch.tied ? &microbatch.tied->weight : nullptr);
  const WeightView& view = read.view();
  if (microbatch.input.defined()) {
    at::Tensor output = layers.forward(view, std::exchange(microbatch.input, {}), microbatch.context, microbatch.saved);
    if (is_last(action)) microbatch.loss = std::move(output);
  }
  at::Tensor grad_input;
  const bool split = action.kind == ActionKind::BackwardInput;
  if (split) {
    grad_input = layers.backward_input(view, std::move(*grad_output), microbatch.saved);
    microbatch.stashed.reset();
    microbatch.tied.reset();
  } else {
    const GradientSums sums = here.replica->gradients.sums(action.microbatch / schedule().window);
    grad_input = layers.backward(view, std::move(*grad_output), microbatch.saved, sums);
  }
  if (is_last(action)) report_loss(action, std::move(microbatch.loss));
  if (action.stage > 0) {
    send_from(state_.device, *here.links->grad_inputs, {action.microbatch, {std::move(grad_input)}, {}, {}});
  }
  if (!split) {
    finish_gradient(action, microbatch);
    here.in_flight.erase(entry);
  }
  return true;
}

std::optional<at::Tensor> Worker::receive_grad_output(const Action& action) {
  // The loss of an update is the mean over its window.
  if (is_last(action)) {
    return at::scalar_tensor(1.0 / static_cast<double>(schedule().window));
  }
  auto message = arrived_on(state_.device, running(action).links->grad_outputs->try_receive(action.microbatch));
  if (!message) return std::nullopt;
  input_came_ = message->came;
  return std::move(message->tensors[0]);
}

void Worker::backward_weights(const Action& action) {
  RunningReplica& here = running(action);
  checked_version(action, version_of(here));
  const auto entry = here.in_flight.find(action.microbatch);
  here.replica->layers.backward_weights(entry->second.saved,
                                        here.replica->gradients.sums(action.microbatch / schedule().window));
  finish_gradient(action, entry->second);
  here.in_flight.erase(entry);
}

// What has come for replicas here whose own sums are complete: those behind them wait for it.
void Worker::pass_on_gradients() {
  for (auto& [place, running] : replicas_) {
    served_ |= add_tied_gradients(running);
    served_ |= running.chain->pass_on();
  }
}

// The replica's last gradient of a window sends their sum on its way to the owner.
void Worker::finish_gradient(const Action& action, const InFlight& microbatch) {
  RunningReplica& here = running(action);
  const int64_t window = action.microbatch / schedule().window;
  const int64_t delay = delay_of(schedule(), action.microbatch, microbatch.version);
  ++here.seen.delay[delay];
  {
    const std::lock_guard lock(status_mutex_);
    WorkerStatus::Delays& seen = delays_[action.stage];
    seen.sum += static_cast<double>(delay);
    ++seen.gradients;
  }
  here.first_delay.emplace(window, delay);
  GradientWindows& gradients = here.replica->gradients;
  if (gradients.count(window) < schedule().microbatches_in_window(action.pipeline, window)) return;
  const auto first_delay = static_cast<double>(here.first_delay.extract(window).mapped());
  const bool decides = action.pipeline == schedule().pipeline_of(window * schedule().window);
  GradientWindows::Closed sums = gradients.close(window);
  if (sums.tied) {
    send_from(state_.device, *here.links->tied_gradients, {window, {sums.tied->tensors[0]}, {}, sums.tied.lend()});
  }
  if (here.links->tied_sums) {
    here.untied.emplace(window, UntiedGradient{std::move(sums.own), first_delay, decides});
    add_tied_gradients(here);
  } else {
    here.chain->finish(window, std::move(sums.own), first_delay, decides);
  }
}

// The tied weight of the version that the first stage is about to read, unless the last stage has it.
void Worker::send_tied_weight(RunningReplica& here) {
  const WeightVersion& version = *here.replica->weights;
  if (here.tied_sent == version.number) return;
  here.tied_sent = version.number;
  const at::Tensor& weight = version.buffer.tensors[*here.replica->shared];
  Message message{version.number, {}, {}, {}};
  if (lends_tied_) {
    message.tensors = {weight};
    message.lease = version.lease;
  } else {
    message.tensors = {weight.clone()};
  }
  send_from(state_.device, *here.links->tied_weights, std::move(message));
}

// Whether `tied` is of that version of the first stage.
bool Worker::take_tied_weight(RunningReplica& here, int64_t number) {
  if (here.tied && here.tied->number == number) return true;
  auto message = arrived_on(state_.device, here.links->tied_reads->try_receive(number));
  if (!message) return false;
  here.tied =
      std::make_shared<TiedVersion>(TiedVersion{number, std::move(message->tensors[0]), std::move(message->lease)});
  return true;
}

// The tied weight's gradient is the first stage's and the last one's, each summed over the window by itself, so that
// the sum is the same whatever the partition. Returns whether there was anything to add.
bool Worker::add_tied_gradients(RunningReplica& here) {
  bool any = false;
  for (; !here.untied.empty(); any = true) {
    auto& [window, own] = *here.untied.begin();
    const auto message = arrived_on(state_.device, here.links->tied_sums->try_receive(window));
    if (!message) break;
    own.sum.tensors[*here.replica->shared].add_(message->tensors[0]);
    here.chain->finish(window, std::move(own.sum), own.delay, own.decides);
    here.untied.erase(here.untied.begin());
  }
  return any;
}

bool Worker::adopt(const Action& action) {
  RunningReplica& here = running(action);
  if (!has_first_version(here)) return false;
  const int64_t found = version_of(here);
  if (!take_version(here, action.microbatch)) return false;
  checked_version(action, found);
  return true;
}

// A segment's first version arrives like any other.
bool Worker::has_first_version(RunningReplica& here) {
  return here.replica->weights || take_version(here, kFirstVersion);
}

// The version of that number becomes the replica's, if all shards of it have come.
bool Worker::take_version(RunningReplica& here, int64_t number) {
  bool all = true;
  for (size_t shard = 0; shard < here.arriving.size(); ++shard) {
    auto& part = here.arriving[shard];
    if (!part) part = arrived_on(state_.device, here.links->versions[shard]->try_receive(number));
    all &= part.has_value();
  }
  if (!all) return false;
  const auto& specs = here.replica->layers.parameters();
  std::vector<WeightReader> parts;
  for (size_t shard = 0; shard < here.arriving.size(); ++shard) {
    const Shard& its = here.shards[shard];
    parts.push_back(to_version(std::move(*here.arriving[shard]), its.of(specs)));
    here.arriving[shard].reset();
  }
  here.replica->weights = joined(std::move(parts));
  return true;
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

// A drain: hold, and say what has been taken in here; then leave out everything at or past the limit.
void Worker::heed_control() {
  while (links_.reports->has_room()) {  // for an answer
    const auto message = links_.control->try_receive();
    if (!message) return;
    served_ = true;
    if (const auto limit = to_limit(*message)) {
      cursor_.restrict_to(std::min(*limit, cursor_.limit()));
      holding_ = false;
    } else {
      holding_ = true;
      links_.reports->send(to_message(HeldReport{admitted_}));
    }
  }
}

// Says once that the program has ended, and what was seen meanwhile. Returns whether it is said.
bool Worker::report_end() {
  if (ended_) return true;
  const bool idle = std::all_of(replicas_.begin(), replicas_.end(),
                                [](const auto& r) { return r.second.untied.empty() && r.second.chain->idle(); });
  if (!idle || !links_.reports->has_room()) return false;
  DeviceEvent::record(state_.device).wait();  // from here on any thread may read and end leases
  seen_.worker.memory = ProcessMemory::now();
  for (const auto& [place, running] : replicas_) seen_.replicas.push_back(running.seen);
  for (const auto& [stage, running] : owners_) seen_.owners.push_back(running.seen);
  links_.reports->send(to_message(std::move(seen_)));
  ended_ = true;
  return true;
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
                               : "the activation of " + from(ActionKind::Forward, action.stage - 1) +
                                     (schedule().tied && is_last(action) ? ", or the tied weight" : "");
    case ActionKind::Backward:
    case ActionKind::BackwardInput:
      return is_last(action) ? "room to report the loss"
                             : "the gradient of " + from(ActionKind::Backward, action.stage + 1);
    case ActionKind::Update:
      return "the gradients of its replicas, or the norms of other owners";
    case ActionKind::Adopt: {
      const std::vector<int> owners = owners_of(action.stage);
      return fmt::format("update {} of stage {} by worker{} {}", action.microbatch, action.stage,
                         owners.size() == 1 ? "" : "s", fmt::join(owners, ", "));
    }
    default:
      return "nothing";
  }
}

// [shard]
std::vector<int> Worker::owners_of(int stage) const {
  std::vector<int> owners;
  for (const auto& shard : schedule().owner) owners.push_back(shard[stage]);
  return owners;
}

int Worker::waits_for() const {
  if (!next_) return kNobody;
  const Action& action = *next_;
  // The only one of `workers` that is another one.
  const auto other = [this](std::vector<int> workers) {
    std::erase(workers, number());
    const bool one = !workers.empty() &&
                     std::all_of(workers.begin(), workers.end(), [&](int worker) { return worker == workers.front(); });
    return one ? workers.front() : kNobody;
  };
  const auto host = [&](int stage) { return other({schedule().worker_of(action.pipeline, stage)}); };
  switch (action.kind) {
    case ActionKind::Forward: {
      const RunningReplica& here = replicas_.at({action.pipeline, action.stage});
      if (!is_last(action) && !here.links->outputs->has_room()) return host(action.stage + 1);
      if (!here.replica->weights) return other(owners_of(action.stage));
      return action.stage == 0 ? kNobody : host(action.stage - 1);
    }
    case ActionKind::Backward:
    case ActionKind::BackwardInput:
      return is_last(action) ? kNobody : host(action.stage + 1);
    case ActionKind::Update: {
      std::vector<int> replicas;
      for (const auto& placement : schedule().placement) replicas.push_back(placement[action.stage]);
      return other(std::move(replicas));
    }
    case ActionKind::Adopt:
      return other(owners_of(action.stage));
    default:
      return kNobody;
  }
}

WorkerStatus Worker::status() const {
  WorkerStatus status;
  status.worker = number();
  links_.count_waiting(status);
  const std::lock_guard lock(status_mutex_);
  status.delays = delays_;
  if (!next_) return status;
  status.action = to_string(*next_, schedule().pipelines);
  status.needs = needs(*next_);
  return status;
}

}  // namespace gyre
