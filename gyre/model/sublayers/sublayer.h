// The contract of a sublayer: a part that layers are built from. Its constructor declares its parameters in the layer's
// list and remembers their indices. It has forward and backward like a layer, with a record type of its own.
//
//   forward           fills the record with what the backward needs, and returns the output.
//   backward_input    returns the gradient with respect to the input (undefined if the input has none). It releases
//                     from the record what backward_weights does not need.
//   backward_weights  adds the gradients of the weights to `gradients` (fp32), and releases the rest of the record.
//
// `weights` and `gradients` are the whole layer's; a sublayer uses only its own. The caller may change an output in
// place. Tensors are created on the device of the input.
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <span>

#include "gyre/model/sublayers/context.h"
#include "gyre/tensors/gradient_sums.h"
#include "gyre/tensors/weight_view.h"

namespace gyre {

template <typename T>
concept Sublayer = requires(const T& part, const WeightView& weights, const at::Tensor& x, const LayerContext& context,
                            typename T::Kept& kept, const GradientSums& gradients, const MicrobatchShape& shape) {
  { part.forward(weights, x, context, kept) } -> std::same_as<at::Tensor>;
  { part.backward_input(weights, x, kept) } -> std::same_as<at::Tensor>;
  { part.backward_weights(kept, gradients) } -> std::same_as<void>;
  { part.cost() } -> std::same_as<double>;             // multiply-adds of a forward, per token
  { part.kept_bytes(shape) } -> std::same_as<double>;  // lower bound of the record's size after a training forward
};

}  // namespace gyre
