// The non-linearities of the MLP, plain and gated.
#pragma once

#include <ATen/core/Tensor.h>

#include "gyre/model/settings/activation.h"

namespace gyre {

at::Tensor activate(const at::Tensor& x, Activation activation);
// x is what activate() was given.
at::Tensor activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation);

// activation(gate) * up (Shazeer, 2020; with SiLU: SwiGLU). x: (..., 2 n), the gate before what it gates. Returns (...,
// n).
at::Tensor gated_activate(const at::Tensor& x, Activation activation);
// x is what gated_activate() was given. Returns (..., 2 n).
at::Tensor gated_activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation);

}  // namespace gyre
