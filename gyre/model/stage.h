// A stage: a contiguous range of layers run as one, by the same explicit contract.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gyre/model/layer.h"

namespace gyre {

// What one microbatch in flight keeps at one stage: one entry per layer.
using StageSaved = std::vector<Saved>;

class Stage {
 public:
  // `layers` are those of the stage; `first_layer` is the model's number of the first of them (it keys random streams).
  Stage(Layers layers, int first_layer);

  // All layers' parameters in order, under full names ("blocks.3.attention.qkv.weight").
  const std::vector<ParameterSpec>& parameters() const { return parameters_; }
  int64_t parameter_count() const;
  // Whether all layers can go on behind tokens that they have read (LayerContext::decoding).
  bool decodes() const;

  // weights: in the order of parameters(). context.layer is ignored (set per layer here).
  at::Tensor forward(const WeightView& weights, const at::Tensor& input, LayerContext context, StageSaved& saved) const;
  // The I half, last layer first. Returns the gradient by the stage's input (undefined at the model's first layer).
  at::Tensor backward_input(const WeightView& weights, at::Tensor grad_output, StageSaved& saved) const;
  // The W half. Adds to `gradients` (fp32).
  void backward_weights(StageSaved& saved, const GradientSums& gradients) const;
  // Both halves, layer by layer, so that each layer's memory returns before the next one's is touched.
  at::Tensor backward(const WeightView& weights, at::Tensor grad_output, StageSaved& saved,
                      const GradientSums& gradients) const;

 private:
  Layers layers_;
  int first_layer_;
  std::vector<size_t> offsets_;  // of each layer's first parameter; one past the end at the back
  std::vector<ParameterSpec> parameters_;
};

// Bytes that a microbatch keeps between forward and backward; tensors that share memory count once.
int64_t saved_bytes(const StageSaved& saved);

// The initial fp32 value of a parameter: a function of (seed, full name) alone, so that it is the same in any
// partition.
at::Tensor initial_value(const ParameterSpec& parameter, uint64_t seed);

}  // namespace gyre
