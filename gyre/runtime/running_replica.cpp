#include "gyre/runtime/running_replica.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>

#include "gyre/core/error.h"

namespace gyre {
namespace {

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

// output: of the model's last layer.
void check_loss(const at::Tensor& output) {
  if (output.defined() && output.dim() == 0) return;
  const std::string what =
      output.defined() ? fmt::format("a tensor of shape ({})", fmt::join(output.sizes(), ", ")) : "nothing";
  throw InputError(
      fmt::format("the model's last layer gives {} where its loss must be: the mean, without dimensions; "
                  "batches must have targets",
                  what));
}

}  // namespace

RunningReplica::RunningReplica(int stage, Replica& replica, const ReplicaLinks& links, const std::vector<Shard>& shards,
                               WorkerContext& worker)
    : stage_(stage),
      replica_(replica),
      links_(links),
      worker_(worker),
      shards_(shards),
      chain_(links, worker.device, flat_elements(replica.layers.parameters()), worker.options.reduction_part, shards_),
      arriving_(links.versions.size()),
      tied_source_(replica, links, worker) {
  replica_.weights.reset();
  seen_.stage = stage;
}

bool RunningReplica::forward(const Action& action) {
  if (!(is_last() || has_output_room()) || !take_first_version()) return false;
  auto input = receive_input(action);
  if (!input) return false;

  InFlight in_flight;
  in_flight.version = worker_.checked_version(action, version());
  in_flight.tied = tied_;
  const ReadWeights weights(replica_.layers, replica_.weights->for_forward(), tied_ ? &tied_->weight : nullptr);
  at::Tensor output = replica_.passes.forward(weights.view(), input->tensor, input->context, in_flight.kept);
  if (is_last()) check_loss(output);
  if (!is_last()) {
    send_output(action, std::move(output), input->first_version);
  } else if (schedule().forward_only) {
    report_loss(action, std::move(output));
  } else {
    in_flight.kept.loss = std::move(output);
  }
  if (!schedule().forward_only) save_for_backward(action, std::move(in_flight));
  return true;
}

// The forward's input and the context of its layers. Empty while the input has not come or may not be taken in.
std::optional<RunningReplica::Input> RunningReplica::receive_input(const Action& action) {
  Input input;
  if (is_first()) {
    Admission& admission = worker_.admission;
    if (admission.holding) return std::nullopt;
    admission.admitted = std::max(admission.admitted, action.microbatch + 1);
    input.first_version = replica_.weights->number;
    tied_source_.send(*replica_.weights);
  } else {
    if (!input_) input_ = worker_.arrived(links_.inputs->try_receive(action.microbatch));
    if (!input_) return std::nullopt;
    if (schedule().tied) input.first_version = static_cast<int64_t>(input_->values[0]);
  }
  if (links_.tied_reads && !take_tied_weight(input.first_version)) return std::nullopt;
  if (input_) {
    worker_.input_came = input_->came;
    input.tensor = std::move(input_->tensors[0]);
    input_.reset();
  }
  input.context = layer_context(action);
  if (is_first() || is_last()) {
    Batch batch = worker_.segment.batches->batch(input.context.microbatch);
    if (is_first()) input.tensor = on_device(batch.inputs, worker_.device);
    if (is_last()) input.context.targets = batch.targets;  // on the host: the head copies what it needs
  }
  return input;
}

LayerContext RunningReplica::layer_context(const Action& action) const {
  LayerContext context;
  context.training = context.loss_in_backward = !schedule().forward_only;
  context.keeps_weights = !reads_latest(worker_.options.weights);
  context.seed = worker_.options.seed;
  context.microbatch = worker_.segment.first_microbatch + action.microbatch;
  return context;
}

void RunningReplica::send_output(const Action& action, at::Tensor output, int64_t first_version) {
  seen_.sizes.output_bytes = static_cast<int64_t>(output.nbytes());
  Message message{action.microbatch, {std::move(output)}, {}, {}};
  if (schedule().tied) message.values = {static_cast<double>(first_version)};
  send_from(worker_.device, *links_.outputs, std::move(message));
}

void RunningReplica::save_for_backward(const Action& action, InFlight in_flight) {
  int64_t& bytes = seen_.sizes.activation_bytes;
  if (bytes == 0) bytes = in_flight.kept.bytes();
  if (!reads_latest(worker_.options.weights)) in_flight.stashed = replica_.weights;
  in_flight_.emplace(action.microbatch, std::move(in_flight));
}

bool RunningReplica::backward(const Action& action) {
  auto grad_output = receive_grad_output(action);
  if (!grad_output) return false;

  const auto entry = in_flight_.find(action.microbatch);
  InFlight& microbatch = entry->second;
  const WeightReader weights = microbatch.stashed ? microbatch.stashed : replica_.weights;
  const int64_t found = worker_.checked_version(action, version());
  const int64_t mismatch = reads_latest(worker_.options.weights) ? found - microbatch.version : 0;
  ++seen_.mismatch[mismatch];

  const ReadWeights read(replica_.layers, mismatch == 0 ? weights->for_forward() : weights->for_backward(),
                         microbatch.tied ? &microbatch.tied->weight : nullptr);
  at::Tensor grad_input;
  const bool split = action.kind == ActionKind::BackwardInput;
  if (split) {
    grad_input = replica_.passes.backward_input(read.view(), std::move(*grad_output), microbatch.kept);
    microbatch.stashed.reset();
    microbatch.tied.reset();
  } else {
    const GradientSums sums = replica_.gradients.sums(worker_.window_of(action));
    grad_input = replica_.passes.backward(read.view(), std::move(*grad_output), microbatch.kept, sums);
  }
  if (is_last()) report_loss(action, std::move(microbatch.kept.loss));
  if (!is_first()) {
    send_from(worker_.device, *links_.grad_inputs, {action.microbatch, {std::move(grad_input)}, {}, {}});
  }
  if (!split) {
    finish_gradient(action, microbatch);
    in_flight_.erase(entry);
  }
  return true;
}

std::optional<at::Tensor> RunningReplica::receive_grad_output(const Action& action) {
  // The loss of an update is the mean over its window.
  if (is_last()) return at::scalar_tensor(1.0 / static_cast<double>(schedule().window));
  auto message = worker_.arrived(links_.grad_outputs->try_receive(action.microbatch));
  if (!message) return std::nullopt;
  worker_.input_came = message->came;
  return std::move(message->tensors[0]);
}

void RunningReplica::backward_weights(const Action& action) {
  worker_.checked_version(action, version());
  const auto entry = in_flight_.find(action.microbatch);
  const GradientSums sums = replica_.gradients.sums(worker_.window_of(action));
  replica_.layers.backward_weights(entry->second.kept.saved, sums);
  finish_gradient(action, entry->second);
  in_flight_.erase(entry);
}

void RunningReplica::report_loss(const Action& action, at::Tensor loss) {
  worker_.report = to_message(LossReport{action.microbatch, std::move(loss)});
}

// The replica's last gradient of a window sends their sum on its way to the owner.
void RunningReplica::finish_gradient(const Action& action, const InFlight& microbatch) {
  const int64_t window = worker_.window_of(action);
  const int64_t delay = delay_of(schedule(), action.microbatch, microbatch.version);
  count_delay(delay);
  first_delay_.emplace(window, delay);
  GradientWindows& gradients = replica_.gradients;
  if (gradients.count(window) < schedule().microbatches_in_window(action.pipeline, window)) return;
  const auto first_delay = static_cast<double>(first_delay_.extract(window).mapped());
  const bool decides = action.pipeline == schedule().pipeline_of(window * schedule().window);
  GradientWindows::Closed sums = gradients.close(window);
  if (sums.tied) {
    send_from(worker_.device, *links_.tied_gradients, {window, {sums.tied->tensors[0]}, {}, sums.tied.lend()});
  }
  tied_source_.finish(window, std::move(sums.own), first_delay, decides, chain_);
}

void RunningReplica::count_delay(int64_t delay) {
  ++seen_.delay[delay];
  worker_.status.add_delay(stage_, delay);
}

void RunningReplica::pass_on_gradients() {
  worker_.served |= tied_source_.add_gradients(chain_);
  worker_.served |= chain_.pass_on();
}

bool RunningReplica::adopt(const Action& action) {
  if (!take_first_version()) return false;
  const int64_t found = version();
  if (!take_version(action.microbatch)) return false;
  worker_.checked_version(action, found);
  return true;
}

// Whether the segment's first version has come, now or before. It arrives like any other.
bool RunningReplica::take_first_version() {
  return has_weights() || take_version(kFirstVersion);
}

// Makes the version with that number the replica's, if all its shards have come. Returns whether they have.
bool RunningReplica::take_version(int64_t number) {
  bool complete = true;
  for (size_t shard = 0; shard < arriving_.size(); ++shard) {
    auto& part = arriving_[shard];
    if (!part) part = worker_.arrived(links_.versions[shard]->try_receive(number));
    complete &= part.has_value();
  }
  if (!complete) return false;
  const auto& specs = replica_.layers.parameters();
  std::vector<WeightReader> parts;
  for (size_t shard = 0; shard < arriving_.size(); ++shard) {
    parts.push_back(to_version(std::move(*arriving_[shard]), shards_[shard].of(specs)));
    arriving_[shard].reset();
  }
  replica_.weights = joined(std::move(parts));
  return true;
}

// Whether `tied_` is version `number` of the first stage; takes it if it has come.
bool RunningReplica::take_tied_weight(int64_t number) {
  if (tied_ && tied_->number == number) return true;
  auto message = worker_.arrived(links_.tied_reads->try_receive(number));
  if (!message) return false;
  tied_ = std::make_shared<TiedVersion>(TiedVersion{number, std::move(message->tensors[0]), std::move(message->lease)});
  return true;
}

}  // namespace gyre
