// A stage: a contiguous range of layers run as one, by the same explicit contract.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gyre/model/layer.h"

namespace gyre {

// What one microbatch in flight keeps at one stage: one entry per layer.
using StageSaved = std::vector<Saved>;

// A weight that a stage reads and that is not its own, but another layer's: the table of a tied output matrix.
struct TiedWeight {
  ParameterSpec spec;  // under the full name of its owner
  size_t place = 0;    // among all that the stage's layers read
};

class Stage {
 public:
  // `layers` are those of the stage; `first_layer` is the model's number of the first of them (it keys random streams).
  Stage(Layers layers, int first_layer);

  // All layers' own parameters in order, under full names ("blocks.3.attention.qkv.weight").
  const std::vector<ParameterSpec>& parameters() const { return parameters_; }
  // What is read besides; the tied weight may be one of the stage's own parameters, which is then read twice.
  const std::optional<TiedWeight>& tied() const { return tied_; }
  // Tensors of the parameters, and of the tied weight, as the functions below take them. Without a tied weight they
  // take those of the parameters.
  std::vector<at::Tensor> with_tied(std::span<const at::Tensor> own, const at::Tensor& tied) const;
  // The same of a stage that has the tied weight itself, or none.
  std::vector<at::Tensor> all_of(std::span<const at::Tensor> own) const;
  int64_t parameter_count() const;
  // Whether all layers can go on behind tokens that they have read (LayerContext::decoding).
  bool decodes() const;

  // weights: in the order of parameters(), with the tied one in its place. context.layer is ignored (set per layer
  // here).
  at::Tensor forward(const WeightView& weights, const at::Tensor& input, LayerContext context, StageSaved& saved) const;
  // The I half, last layer first. Returns the gradient by the stage's input (undefined at the model's first layer).
  at::Tensor backward_input(const WeightView& weights, at::Tensor grad_output, StageSaved& saved) const;
  // The W half. Adds to `gradients` (fp32), which are in the same order.
  void backward_weights(StageSaved& saved, const GradientSums& gradients) const;
  // Both halves, layer by layer, so that each layer's memory returns before the next one's is touched.
  at::Tensor backward(const WeightView& weights, at::Tensor grad_output, StageSaved& saved,
                      const GradientSums& gradients) const;

 private:
  Layers layers_;
  int first_layer_;
  std::vector<size_t> offsets_;  // of each layer's first weight; one past the end at the back
  std::vector<ParameterSpec> parameters_;
  std::optional<TiedWeight> tied_;
};

// Bytes that a microbatch keeps between forward and backward; tensors that share memory count once.
int64_t saved_bytes(const StageSaved& saved);

// The initial fp32 value of a parameter: a function of (seed, full name) alone, so that it is the same in any
// partition.
at::Tensor initial_value(const ParameterSpec& parameter, uint64_t seed);

}  // namespace gyre
