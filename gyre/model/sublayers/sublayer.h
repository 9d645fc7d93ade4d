// The contract of a sublayer: a part that layers are put together from. It declares its parameters in the layer's list
// when it is made, remembers their places, and has forward and backward like a layer, with a record of its own type.
//
//   forward         fills the record with what the backward needs, and returns the output.
//   backward_input  returns the gradient by the input (undefined where the input has none). It releases what
//                   backward_weights has no use for, and leaves what that needs.
//   backward_weights  adds the gradients by the weights to `gradients` (fp32), and releases the rest.
//
// Weights and gradients are the whole layer's; a sublayer takes its own. An output is the caller's to change in place.
// Tensors are made on the device of the input.
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
  { part.kept_bytes(shape) } -> std::same_as<double>;  // of the record after a forward in training; never more
};

}  // namespace gyre
