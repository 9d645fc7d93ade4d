// Activation functions of the MLP, plain and gated, with their backward.
#pragma once

#include <ATen/core/Tensor.h>

#include "gyre/model/settings/activation.h"

namespace gyre {

at::Tensor activate(const at::Tensor& x, Activation activation);

// activation(gate) * up (Shazeer, 2020; with SiLU: SwiGLU). x: (..., 2 n), gate first, then up. Returns (..., n).
at::Tensor gated_activate(const at::Tensor& x, Activation activation);

// The backward also recomputes the forward's output, which costs almost nothing, so that it need not be saved for the
// next matrix's weight gradient.
struct ActivationBackward {
  at::Tensor grad;    // with respect to x
  at::Tensor output;  // bit-identical to the forward's
};
// x: the input that activate() was given.
ActivationBackward activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation);
// x: the input that gated_activate() was given; its gradient is (..., 2 n).
ActivationBackward gated_activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation);

namespace portable {
at::Tensor activate(const at::Tensor& x, Activation activation);
ActivationBackward activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation);
at::Tensor gated_activate(const at::Tensor& x, Activation activation);
ActivationBackward gated_activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation);
}  // namespace portable

}  // namespace gyre
