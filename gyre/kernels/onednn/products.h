// The products of y = x W^T in bf16 by oneDNN itself: the bias with the product, and gradients of weights added in fp32
// where they are kept. Where these cannot serve (built without oneDNN, a CPU without instructions for bf16, other types
// and devices) they say so, and the caller has its portable path.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace gyre::onednn {

// x: (..., in); weight: (out, in); bias: (out) or undefined. Returns (..., out); undefined: it cannot.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
// grad: (..., out). Returns (..., in); undefined: it cannot.
at::Tensor linear_backward_input(const at::Tensor& grad, const at::Tensor& weight);
// weight_gradient (out, in), fp32, += grad^T x, or = where it does not add. False: it cannot.
bool linear_backward_weight(const at::Tensor& x, const at::Tensor& grad, at::Tensor& weight_gradient, bool adds);

// Whether it can, on this CPU.
bool serves_cpu();
// "oneDNN 2.6.3 (AVX-512)", or "libtorch" and why.
std::string description();

}  // namespace gyre::onednn
