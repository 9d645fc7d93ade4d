// y = x W^T in bf16 by the products beside: the bias with the product, and gradients of weights added in fp32 where
// they are kept. Where these cannot serve (what the CPU or the build lacks, other types and devices) they say so, and
// the caller has its portable path.
#pragma once

#include <ATen/core/Tensor.h>

namespace gyre::bf16 {

// x: (..., in); weight: (out, in); bias: (out) or undefined. Returns (..., out); undefined: it cannot.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
// grad: (..., out). Returns (..., in); undefined: it cannot.
at::Tensor linear_backward_input(const at::Tensor& grad, const at::Tensor& weight);
// weight_gradient (out, in), fp32, += grad^T x, or = where it does not add. False: it cannot.
bool linear_backward_weight(const at::Tensor& x, const at::Tensor& grad, at::Tensor& weight_gradient, bool adds);

// a b in `type`, fp32 or bf16; a (m, k) and b (k, n) bf16, or their transposes' views. Undefined: it cannot.
at::Tensor product(const at::Tensor& a, const at::Tensor& b, at::ScalarType type);

}  // namespace gyre::bf16
