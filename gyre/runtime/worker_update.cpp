// A worker as the owner of stages: it gathers the gradients of a window, clips them, updates, and publishes the
// version.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/optim/clipping.h"
#include "gyre/runtime/worker.h"
#include "gyre/tensors/profile_scope.h"

namespace gyre {

// All chains' gradients of the window, summed in the order of pipelines, clipped and applied.
bool Worker::update(const Action& action) {
  const ProfileScope scope("gyre::update");
  RunningOwner& here = owners_.at(action.stage);
  if (!links_.reports->has_room() || !gather_gradient(here)) return false;
  const at::Tensor norm = gradient_norm(action);
  if (!norm.defined()) return false;
  apply_update(action, norm);
  publish(here, action.microbatch);
  UpdateReport report{action.stage, here.links->shard, action.microbatch, std::exchange(here.norms, {}), norm};
  send_from(state_.device, *links_.reports, to_message(std::move(report)));
  ++here.window;
  return true;
}

// Where others wait for an owner's norms it gives them as soon as it can, whatever its program waits for.
void Worker::gather_gradients() {
  for (auto& [stage, owner] : owners_) {
    if (owner.links->norms) gather_gradient(owner);
  }
}

// Whether the gradient of the owner's next window is complete; then it is in `gradient`.
bool Worker::gather_gradient(RunningOwner& here) {
  if (here.norms.defined()) return true;
  here.gathered.resize(schedule().pipelines);
  bool complete = true;
  for (int p = 0; p < schedule().pipelines; ++p) {
    auto& gradient = here.gathered[p];
    const auto& link = here.links->sums[p];
    if (!link || gradient || schedule().microbatches_in_window(p, here.window) == 0) continue;
    auto message = arrived_on(state_.device, link->try_receive(here.window));
    if (message) {
      gradient = {std::move(message->tensors), static_cast<int64_t>(message->values[0]), std::move(message->lease)};
    }
    complete &= gradient.has_value();
  }
  if (!complete) return false;
  add_up(here);
  served_ = true;
  here.norms = squared_norms(here.gradient);
  if (here.links->norms) send_from(state_.device, *here.links->norms, {here.window, {here.norms}, {}, {}});
  return true;
}

// The chains' sums, added in the order of pipelines to the first of them. The others' memory goes back.
void Worker::add_up(RunningOwner& here) {
  ReducedGradient* sum = nullptr;
  for (int p = 0; p < schedule().pipelines; ++p) {
    auto& gradient = here.gathered[p];
    if (!gradient) continue;
    if (sum == nullptr) {
      sum = &*gradient;
      continue;
    }
    sum->sum[0].add_(gradient->sum[0]);
    if (p == chains_.last(schedule().pipeline_of(here.window * schedule().window))) sum->delay = gradient->delay;
    gradient.reset();
  }
  here.gradient = schedule().gradients_stay_whole()
                      ? std::move(sum->sum)
                      : view_flat_buffer(sum->sum[0], here.owner->weights.specs()).tensors;
}

// What the gradient is clipped by, or left out for if it is not finite. Undefined while other owners' norms are
// missing.
at::Tensor Worker::gradient_norm(const Action& action) {
  RunningOwner& here = owners_.at(action.stage);
  if (!here.links->norm_sum) return whole_norm({&here.norms, 1});
  const auto message = arrived_on(state_.device, here.links->norm_sum->try_receive(action.microbatch));
  return message ? message->tensors[0] : at::Tensor();
}

// Takes the norms that have come, and sends their owners the norm of all once all have. The sum runs over parameters in
// the model's order whatever the partition and the shards, so the result is the same to the bit.
void Worker::sum_norms() {
  for (size_t i = 0; i < links_.norm_sums.size(); ++i) {
    const NormSumLinks& links = links_.norm_sums[i];
    auto& waiting = norms_[i];
    for (size_t owner = 0; owner < links.norms.size(); ++owner) {
      while (auto message = arrived_on(state_.device, links.norms[owner]->try_receive())) {
        auto& norms = waiting[message->number];
        norms.resize(links.norms.size());
        norms[owner] = std::move(message->tensors[0]);
      }
    }
    while (!waiting.empty()) {
      const auto& [window, norms] = *waiting.begin();
      if (!std::all_of(norms.begin(), norms.end(), [](const at::Tensor& own) { return own.defined(); })) break;
      const at::Tensor norm = whole_norm(norms);
      for (const auto& sum : links.sums) send_from(state_.device, *sum, {window, {norm}, {}, {}});
      waiting.erase(waiting.begin());
      served_ = true;
    }
  }
}

// An update whose gradient is not finite makes a version like the one before: schedules, delays and the other stages'
// updates stay what they are. The conductor counts it.
void Worker::apply_update(const Action& action, const at::Tensor& norm) {
  RunningOwner& here = owners_.at(action.stage);
  StageOwner& owner = *here.owner;
  const int64_t window = action.microbatch;
  analysis_.track(action);
  if (owner.weights.version() != segment_.first_update + window) {
    throw RunError(fmt::format("action {} found {} updates made before it", to_string(action, schedule().pipelines),
                               owner.weights.version() - segment_.first_update));
  }
  // Replicas here that change with the owner read the outgoing version no more.
  for (int p = 0; p < schedule().pipelines; ++p) {
    if (!here.links->versions[p]) replicas_.at({p, action.stage}).replica->weights.reset();
  }
  const auto sum =
      std::find_if(here.gathered.begin(), here.gathered.end(), [](const auto& g) { return g.has_value(); });
  UpdateContext context;
  if (options_.clip_scope != ClipScope::None) {
    if (norm.is_cpu() && owner.optimizer->takes_gradient_factor()) {
      context.gradient_factor = clip_factor(norm, options_.clip);
    } else {
      clip(here.gradient, norm, options_.clip);
    }
  }
  context.update = segment_.first_update + window + 1;
  context.delay = (*sum)->delay;
  context.mean_delay = owner.mean_delay;
  context.learning_rate = options_.learning_rate(context.update);
  owner.weights.update(*owner.optimizer, here.gradient, norm, context);
  if (owner.average) {
    owner.average->take_in([&](size_t i) { return owner.weights.master(i); }, owner.weights.version());
  }
  here.gradient.clear();
  sum->reset();
}

WeightReader Worker::read(StageOwner& owner) const {
  if (segment_.weights == ModelWeights::Trained) return owner.weights.read();
  return owner.weights.read_with(owner.average.value().values().flat);
}

// The newest version goes to every replica: at once to those here that change with the owner, by message to the others.
// The first of a segment goes at once to all that are here.
void Worker::publish(RunningOwner& here, int64_t number) {
  const int stage = here.seen.stage;
  for (int p = 0; p < schedule().pipelines; ++p) {
    // Lent to each by itself: it ends where it was read.
    const WeightReader version = read(*here.owner);
    if (const auto& link = here.links->versions[p]) {
      send_from(state_.device, *link, to_message(*version, number));
    } else {
      replicas_.at({p, stage}).replica->weights = version;
    }
  }
  here.seen.peak_weight_buffers =
      std::max(here.seen.peak_weight_buffers, static_cast<int64_t>(here.owner->weights.live_buffers()));
}

}  // namespace gyre
