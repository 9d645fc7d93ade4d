// The non-linearities of the MLP, plain and gated.
#pragma once

#include <ATen/core/Tensor.h>

#include "gyre/model/settings/activation.h"

namespace gyre {

at::Tensor activate(const at::Tensor& x, Activation activation);

// activation(gate) * up (Shazeer, 2020; with SiLU: SwiGLU). x: (..., 2 n), the gate before what it gates. Returns (...,
// n).
at::Tensor gated_activate(const at::Tensor& x, Activation activation);

// What the backward reads of x gives the output anew almost for nothing, so that nobody has to keep it for the next
// matrix's gradient.
struct ActivationBackward {
  at::Tensor grad;    // by x
  at::Tensor output;  // the forward's, to the bit
};
// x is what activate() was given.
ActivationBackward activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation);
// x is what gated_activate() was given. Its gradient: (..., 2 n).
ActivationBackward gated_activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation);

namespace portable {
at::Tensor activate(const at::Tensor& x, Activation activation);
ActivationBackward activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation);
at::Tensor gated_activate(const at::Tensor& x, Activation activation);
ActivationBackward gated_activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation);
}  // namespace portable

}  // namespace gyre
