// The forward and the backward of a stage's layers for one microbatch, with recompute or without it. Without it all
// layers are one group, whose forward is not repeated.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "gyre/model/stage.h"
#include "gyre/schedule/layer_range.h"
#include "gyre/schedule/recompute_groups.h"

namespace gyre {

class StagePasses {
 public:
  // recompute: what the schedule makes of the stage; none: nothing is recomputed.
  StagePasses(const Stage& layers, std::optional<HeldMicrobatches> recompute);

  // What one microbatch keeps from its forward to its backward.
  struct Kept {
    StageSaved saved;                // [layer]; empty in groups whose forward will be repeated
    std::vector<at::Tensor> inputs;  // [group]: the input of such a group, undefined for others
    LayerContext context;
    at::Tensor loss;  // at the last stage; its value may come only with the backward
    int64_t bytes() const;
  };

  // Arguments and results are as the stage's. Nothing is kept if the context is not of training. With recompute the
  // first call also chooses the groups.
  at::Tensor forward(const WeightView& weights, const at::Tensor& input, const LayerContext& context, Kept& kept);
  // Forwards are repeated with the backward's weights, from the inputs that the microbatch's own forward computed.
  at::Tensor backward(const WeightView& weights, at::Tensor grad_output, Kept& kept,
                      const GradientSums& gradients) const;
  at::Tensor backward_input(const WeightView& weights, at::Tensor grad_output, Kept& kept) const;

 private:
  std::vector<LayerKeeps> measure(const WeightView& weights, const at::Tensor& input,
                                  const LayerContext& context) const;
  void repeat_forward(size_t group, const WeightView& weights, Kept& kept) const;
  template <typename BackwardLayer>
  at::Tensor backward_by_groups(const WeightView& weights, at::Tensor grad, Kept& kept,
                                BackwardLayer&& backward_layer) const;
  bool repeats(size_t group) const;

  const Stage& layers_;
  std::optional<HeldMicrobatches> recompute_;
  std::vector<LayerRange> groups_;  // empty until they are chosen
};

}  // namespace gyre
