// A stage: a contiguous range of layers that runs as one, with the same explicit forward and backward as a layer.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gyre/model/layer.h"

namespace gyre {

// What one microbatch in flight saves for its backward at one stage: one entry per layer.
using StageSaved = std::vector<Saved>;

// A weight that a layer of the stage reads but that belongs to another layer: the embedding table of a tied output
// matrix.
struct TiedWeight {
  ParameterSpec spec;  // with the full name under which its owner has it
  size_t place = 0;    // its index among all weights that the stage's layers read
};

class Stage {
 public:
  // first_layer: the index in the model of the stage's first layer (it keys random streams).
  Stage(Layers layers, int first_layer);

  // All layers' own parameters in order, with full names ("blocks.3.attention.qkv.weight").
  const std::vector<ParameterSpec>& parameters() const { return parameters_; }
  // The tied weight that is read besides, if any. It may be one of the stage's own parameters, which is then read
  // twice.
  const std::optional<TiedWeight>& tied() const { return tied_; }
  // All weights in the order in which forward and backward take them: `own`, with the tied weight, if there is one,
  // inserted at its place.
  std::vector<at::Tensor> with_tied(std::span<const at::Tensor> own, const at::Tensor& tied) const;
  // The same for a stage without a tied weight, or whose tied weight is one of its own parameters.
  std::vector<at::Tensor> all_of(std::span<const at::Tensor> own) const;
  int64_t parameter_count() const;
  // Whether all layers can continue from tokens that they have already read (LayerContext::decoding).
  bool decodes() const;

  // weights: in the order of parameters(), with the tied one at its place. context.layer is overwritten for each layer.
  at::Tensor forward(const WeightView& weights, const at::Tensor& input, LayerContext context, StageSaved& saved) const;
  // The I half, last layer first. Returns the gradient with respect to the stage's input (undefined if it has the
  // model's first layer).
  at::Tensor backward_input(const WeightView& weights, at::Tensor grad_output, StageSaved& saved) const;
  // The W half. Adds to `gradients` (fp32), which are in the same order.
  void backward_weights(StageSaved& saved, const GradientSums& gradients) const;
  // Both halves, layer by layer, so that each layer's saved tensors are freed before the next layer runs.
  at::Tensor backward(const WeightView& weights, at::Tensor grad_output, StageSaved& saved,
                      const GradientSums& gradients) const;

  // The same of one layer, counted from the stage's first. Weights and gradients are the whole stage's.
  size_t layer_count() const { return layers_.size(); }
  at::Tensor forward_layer(size_t layer, const WeightView& weights, const at::Tensor& input, LayerContext context,
                           Saved& saved) const;
  at::Tensor backward_input_layer(size_t layer, const WeightView& weights, const at::Tensor& grad_output,
                                  Saved& saved) const;
  at::Tensor backward_layer(size_t layer, const WeightView& weights, const at::Tensor& grad_output, Saved& saved,
                            const GradientSums& gradients) const;

 private:
  WeightView weights_of(size_t layer, const WeightView& weights) const;
  GradientSums gradients_of(size_t layer, const GradientSums& gradients) const;

  Layers layers_;
  int first_layer_;
  std::vector<size_t> offsets_;  // of each layer's first weight, and the total count at the end
  std::vector<ParameterSpec> parameters_;
  std::optional<TiedWeight> tied_;
};

// Bytes that a microbatch saves for its backward. Tensors that share a storage count once, with the whole storage.
int64_t saved_bytes(std::span<const Saved> saved);

// The initial fp32 value of a parameter. It depends only on the spec, with its full name, and on the seed, so it is the
// same for any partition.
at::Tensor initial_value(const ParameterSpec& parameter, uint64_t seed);

}  // namespace gyre
