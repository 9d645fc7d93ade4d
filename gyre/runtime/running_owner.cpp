#include "gyre/runtime/running_owner.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <utility>

#include "gyre/core/error.h"
#include "gyre/optim/clipping.h"
#include "gyre/tensors/profile_scope.h"

namespace gyre {
namespace {

// On a device this waits until the gradient is there. In return an update that must be left out is not begun, and one
// that clips needs no pass of its own. The meta device has no values: nothing is clipped there.
double value_of(const at::Tensor& norm) {
  if (norm.is_meta()) return 0;
  return on_device(norm, host(), DeviceEvent::record(norm.device())).item<double>();
}

}  // namespace

RunningOwner::RunningOwner(StageOwner& owner, const OwnerLinks& links, std::vector<Replica*> beside,
                           WorkerContext& worker)
    : owner_(owner), links_(links), beside_(std::move(beside)), worker_(worker), gathered_(links.sums.size()) {
  owner_.weights.begin_segment();
  publish(kFirstVersion);
}

// All chains' gradients of the window, summed in the order of pipelines, clipped and applied.
bool RunningOwner::update(const Action& action) {
  const ProfileScope scope("gyre::update");
  if (!gather_gradient()) return false;
  const at::Tensor whole = clip_norm(action.microbatch);
  if (!whole.defined()) return false;
  const double norm = value_of(whole);
  apply_update(action, norm);
  publish(action.microbatch);
  UpdateReport report{action.stage, links_.shard, action.microbatch, std::exchange(squared_norms_, {}), norm};
  worker_.report = to_message(std::move(report));
  ++window_;
  return true;
}

void RunningOwner::gather_early() {
  if (links_.norms) gather_gradient();
}

// Whether the gradient of the owner's next window is complete; if so, it is in `gradient_`.
bool RunningOwner::gather_gradient() {
  if (squared_norms_.defined()) return true;
  if (!receive_sums()) return false;
  add_sums();
  worker_.served = true;
  squared_norms_ = squared_norms(gradient_);
  if (links_.norms) send_from(worker_.device, *links_.norms, {window_, {squared_norms_}, {}, {}});
  return true;
}

// Whether the sums of all chains that have microbatches in the window have come.
bool RunningOwner::receive_sums() {
  bool complete = true;
  for (int p = 0; p < schedule().pipelines; ++p) {
    auto& gradient = gathered_[p];
    const auto& link = links_.sums[p];
    if (!link || gradient || schedule().microbatches_in_window(p, window_) == 0) continue;
    auto message = worker_.arrived(link->try_receive(window_));
    if (message) {
      gradient = {std::move(message->tensors), static_cast<int64_t>(message->values[0]), std::move(message->lease)};
    }
    complete &= gradient.has_value();
  }
  return complete;
}

// Adds the chains' sums, in the order of pipelines, to the first of them, and releases the others' memory. The delay is
// that of the window's first microbatch.
void RunningOwner::add_sums() {
  const int decides = worker_.chains.last(schedule().pipeline_of(window_ * schedule().window));
  for (int p = 0; p < schedule().pipelines; ++p) {
    auto gradient = std::exchange(gathered_[p], std::nullopt);
    if (!gradient) continue;
    if (!sum_) {
      sum_ = std::move(gradient);
      continue;
    }
    sum_->sum[0].add_(gradient->sum[0]);
    if (p == decides) sum_->delay = gradient->delay;
  }
  gradient_ = schedule().gradients_stay_whole() ? std::move(sum_->sum)
                                                : view_flat_buffer(sum_->sum[0], owner_.weights.specs()).tensors;
}

// The norm to clip by; if it is not finite, the update is skipped. Undefined while other owners' norms are missing.
at::Tensor RunningOwner::clip_norm(int64_t window) {
  if (!links_.norm_sum) return whole_norm({&squared_norms_, 1});
  const auto message = worker_.arrived(links_.norm_sum->try_receive(window));
  return message ? message->tensors[0] : at::Tensor();
}

// An update whose gradient is not finite makes a version equal to the one before: schedules, delays and the updates of
// other stages stay the same. The conductor counts it.
void RunningOwner::apply_update(const Action& action, double norm) {
  worker_.analysis.track(action);
  check_updates_made(action);
  // The replicas on this worker that change with the owner release the outgoing version.
  for (Replica* replica : beside_) {
    if (replica != nullptr) replica->weights.reset();
  }
  UpdateContext context;
  clip_gradient(norm, context);
  context.update = worker_.segment.first_update + action.microbatch + 1;
  context.delay = sum_->delay;
  context.mean_delay = owner_.mean_delay;
  context.learning_rate = worker_.options.learning_rate(context.update);
  owner_.weights.update(*owner_.optimizer, gradient_, norm, context);
  if (owner_.average) {
    owner_.average->take_in([this](size_t i) { return owner_.weights.master(i); }, owner_.weights.version());
  }
  gradient_.clear();
  sum_.reset();
}

void RunningOwner::check_updates_made(const Action& action) const {
  const int64_t made = owner_.weights.version() - worker_.segment.first_update;
  if (made == action.microbatch) return;
  throw RunError(
      fmt::format("action {} found {} updates made before it", to_string(action, schedule().pipelines), made));
}

// Clips now, or lets the optimizer do it in its pass over the gradient if it can.
void RunningOwner::clip_gradient(double norm, UpdateContext& context) {
  const RuntimeOptions& options = worker_.options;
  if (options.clip == 0) return;
  if (owner_.optimizer->takes_gradient_factor()) {
    context.gradient_factor = clip_factor(norm, options.clip);
  } else {
    clip(gradient_, norm, options.clip);
  }
}

// Gives the newest version to every replica: directly to those that change with the owner, by message to the others.
void RunningOwner::publish(int64_t number) {
  for (int p = 0; p < schedule().pipelines; ++p) {
    // Each gets a lease of its own, which ends where it was read.
    const WeightReader version = read();
    if (beside_[p] != nullptr) {
      beside_[p]->weights = version;
    } else {
      send_from(worker_.device, *links_.versions[p], to_message(*version, number));
    }
  }
}

WeightReader RunningOwner::read() const {
  if (worker_.segment.weights == ModelWeights::Trained) return owner_.weights.read();
  return owner_.weights.read_with(owner_.average.value().values().flat);
}

}  // namespace gyre
