#include "gyre/runtime/stage_passes.h"

#include <utility>

namespace gyre {

StagePasses::StagePasses(const Stage& layers, std::optional<HeldMicrobatches> recompute)
    : layers_(layers), recompute_(recompute) {
  if (!recompute_) groups_ = {{0, static_cast<int>(layers.layer_count())}};
}

int64_t StagePasses::Kept::bytes() const {
  int64_t bytes = saved_bytes(saved);
  for (const at::Tensor& input : inputs) {
    if (input.defined()) bytes += static_cast<int64_t>(input.nbytes());
  }
  return bytes;
}

// Whether the group's forward is repeated.
bool StagePasses::repeats(size_t group) const {
  return recompute_ && recompute_->repeats(group, groups_.size());
}

at::Tensor StagePasses::forward(const WeightView& weights, const at::Tensor& input, const LayerContext& context,
                                Kept& kept) {
  if (!context.training) return layers_.forward(weights, input, context, kept.saved);
  if (groups_.empty()) groups_ = recompute_groups(measure(weights, input, context), *recompute_);
  if (recompute_) kept.context = context;
  kept.saved.resize(layers_.layer_count());
  kept.inputs.resize(groups_.size());
  at::Tensor x = input;
  for (size_t group = 0; group < groups_.size(); ++group) {
    if (repeats(group)) kept.inputs[group] = x;
    for (int i = groups_[group].begin; i < groups_[group].end; ++i) {
      x = layers_.forward_layer(i, weights, x, context, kept.saved[i]);
      if (repeats(group)) kept.saved[i].clear();
    }
  }
  return x;
}

// A forward of its own, which holds no more than one layer's tensors at once.
std::vector<LayerKeeps> StagePasses::measure(const WeightView& weights, const at::Tensor& input,
                                             const LayerContext& context) const {
  std::vector<LayerKeeps> layers;
  at::Tensor x = input;
  for (size_t i = 0; i < layers_.layer_count(); ++i) {
    Saved saved;
    const auto input_bytes = static_cast<int64_t>(x.nbytes());
    x = layers_.forward_layer(i, weights, x, context, saved);
    layers.push_back({input_bytes, saved_bytes({&saved, 1})});
  }
  return layers;
}

void StagePasses::repeat_forward(size_t group, const WeightView& weights, Kept& kept) const {
  at::Tensor x = std::exchange(kept.inputs[group], {});
  for (int i = groups_[group].begin; i < groups_[group].end; ++i) {
    x = layers_.forward_layer(i, weights, x, kept.context, kept.saved[i]);
  }
  if (kept.loss.defined() && group + 1 == groups_.size()) kept.loss = std::move(x);
}

template <typename BackwardLayer>
at::Tensor StagePasses::backward_by_groups(const WeightView& weights, at::Tensor grad, Kept& kept,
                                           BackwardLayer&& backward_layer) const {
  for (size_t group = groups_.size(); group-- > 0;) {
    if (kept.inputs[group].defined()) repeat_forward(group, weights, kept);
    for (int i = groups_[group].end; i-- > groups_[group].begin;) grad = backward_layer(i, grad);
  }
  return grad;
}

at::Tensor StagePasses::backward(const WeightView& weights, at::Tensor grad_output, Kept& kept,
                                 const GradientSums& gradients) const {
  return backward_by_groups(weights, std::move(grad_output), kept, [&](int layer, const at::Tensor& grad) {
    return layers_.backward_layer(layer, weights, grad, kept.saved[layer], gradients);
  });
}

at::Tensor StagePasses::backward_input(const WeightView& weights, at::Tensor grad_output, Kept& kept) const {
  return backward_by_groups(weights, std::move(grad_output), kept, [&](int layer, const at::Tensor& grad) {
    return layers_.backward_input_layer(layer, weights, grad, kept.saved[layer]);
  });
}

}  // namespace gyre
