// A worker as the owner of stages: it gathers the gradients of a window, clips them, updates, and publishes the
// version.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/optim/clipping.h"
#include "gyre/runtime/worker.h"

namespace gyre {

// All replicas' gradients of the window, summed in the order of pipelines, clipped and applied.
bool Worker::update(const Action& action) {
  RunningOwner& here = owners_.at(action.stage);
  if (!links_.reports->has_room() || !gather_gradient(here, action.microbatch)) return false;
  const auto norm = gradient_norm(action);
  if (!norm) return false;
  apply_update(action, *norm);
  publish(here, action.microbatch);
  links_.reports->send(to_message(UpdateReport{action.stage, action.microbatch, *std::exchange(here.norms, {})}));
  return true;
}

// Whether the window's gradient is complete; then it is in `gradient`.
bool Worker::gather_gradient(RunningOwner& here, int64_t window) {
  if (here.norms) return true;
  here.gathered.resize(schedule().pipelines);
  bool complete = true;
  for (int p = 0; p < schedule().pipelines; ++p) {
    auto& gradient = here.gathered[p];
    if (gradient || schedule().microbatches_in_window(p, window) == 0) continue;
    auto message = here.links->reductions[p]->try_receive(window);
    if (message) {
      gradient = {std::move(message->tensors[0]), static_cast<int64_t>(message->values[0]), std::move(message->lease)};
    }
    complete &= gradient.has_value();
  }
  if (!complete) return false;
  add_up(here, window);
  here.norms = squared_norms(here.gradient.tensors);
  if (here.links->norms) {
    here.links->norms->send({window, {}, *here.norms, {}});
    served_ = true;
  }
  return true;
}

// The replicas' sums, added in the order of pipelines to the first of them. The others' memory goes back.
void Worker::add_up(RunningOwner& here, int64_t window) {
  ReducedGradient* sum = nullptr;
  for (int p = 0; p < schedule().pipelines; ++p) {
    auto& gradient = here.gathered[p];
    if (!gradient) continue;
    if (sum == nullptr) {
      sum = &*gradient;
      continue;
    }
    sum->sum.add_(gradient->sum);
    if (p == schedule().pipeline_of(window * schedule().window)) sum->delay = gradient->delay;
    gradient.reset();
  }
  here.gradient = view_flat_buffer(sum->sum, here.owner->weights.specs());
}

// What the gradient is clipped by, or left out for if it is not finite. Nothing while other stages' norms are missing.
std::optional<double> Worker::gradient_norm(const Action& action) {
  RunningOwner& here = owners_.at(action.stage);
  if (!here.links->norm_sum) return std::sqrt(combine(*here.norms));
  // A worker with several stages gives all their norms before it waits for the others'.
  for (auto& [stage, other] : owners_) gather_gradient(other, action.microbatch);
  sum_norms();
  const auto message = here.links->norm_sum->try_receive(action.microbatch);
  if (!message) return std::nullopt;
  return message->values[0];
}

// At the owner of stage 0: takes the norms that have come, and sends each stage the norm of the whole model's gradient
// once all have. The sum runs over parameters in the model's order whatever the partition, so the result is the same to
// the bit.
void Worker::sum_norms() {
  for (size_t stage = 0; stage < links_.norm_sum.norms.size(); ++stage) {
    while (auto message = links_.norm_sum.norms[stage]->try_receive()) {
      auto& norms = norms_[message->number];
      norms.resize(links_.norm_sum.norms.size());
      norms[stage] = std::move(message->values);
    }
  }
  while (!norms_.empty()) {
    const auto& [window, by_stage] = *norms_.begin();
    std::vector<double> all;
    for (const auto& norms : by_stage) {
      if (!norms) return;
      all.insert(all.end(), norms->begin(), norms->end());
    }
    const double norm = std::sqrt(combine(all));
    for (const auto& sum : links_.norm_sum.sums) sum->send({window, {}, {norm}, {}});
    norms_.erase(norms_.begin());
    served_ = true;
  }
}

void Worker::apply_update(const Action& action, double norm) {
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
  if (options_.clip_scope != ClipScope::None) {
    const double factor = clip_factor(norm, options_.clip);
    if (factor < 1) scale(here.gradient.tensors, factor);
  }
  UpdateContext context;
  context.update = segment_.first_update + window + 1;
  context.delay = (*sum)->delay;
  context.mean_delay = owner.mean_delay;
  context.learning_rate = options_.learning_rate(context.update);
  const auto masters = owner.weights.begin_update();
  if (std::isfinite(norm)) {
    owner.skipped_in_a_row = 0;
    owner.optimizer->step(masters, here.gradient.tensors, context);
  } else {
    count_skipped(action);
  }
  owner.weights.finish_update();
  here.gradient = {};
  sum->reset();
}

// An update whose gradient is not finite makes a version like the one before: schedules, delays and the other stages'
// updates stay what they are, and neither weights nor moments nor bases hear of it.
void Worker::count_skipped(const Action& action) {
  RunningOwner& here = owners_.at(action.stage);
  StageOwner& owner = *here.owner;
  ++here.seen.skipped;
  if (++owner.skipped_in_a_row <= options_.max_skipped) return;
  const auto bad = std::find_if(here.norms->begin(), here.norms->end(), [](double n) { return !std::isfinite(n); });
  const std::string what =
      bad == here.norms->end()
          ? "the norm of the model's gradient"
          : fmt::format("the gradient of '{}'", owner.weights.specs()[bad - here.norms->begin()].name);
  throw Divergence(
      fmt::format("update {} of stage {}: {} is not finite{}; lower [optimizer] lr, or lengthen its warmup",
                  segment_.first_update + action.microbatch + 1, action.stage, what,
                  owner.skipped_in_a_row > 1 ? fmt::format(", {} times in a row", owner.skipped_in_a_row) : ""));
}

// The newest version goes to every replica: at once to those here that change with the owner, by message to the others.
// The first of a segment goes at once to all that are here.
void Worker::publish(RunningOwner& here, int64_t number) {
  const int stage = here.seen.stage;
  const WeightReader version = here.owner->weights.read();
  for (int p = 0; p < schedule().pipelines; ++p) {
    if (const auto& link = here.links->versions[p]) {
      link->send(to_message(*version, number));
    } else {
      replicas_.at({p, stage}).replica->weights = version;
    }
  }
  here.seen.peak_weight_buffers =
      std::max(here.seen.peak_weight_buffers, static_cast<int64_t>(here.owner->weights.live_buffers()));
}

}  // namespace gyre
