// y = x W^T in bf16 with the matrix products of product.h. The product adds the bias itself, and adds weight gradients
// to fp32 sums. If the CPU, the build, the types or the device do not allow it, these functions say so, and the caller
// uses its portable path.
#pragma once

#include <ATen/core/Tensor.h>

namespace gyre::bf16 {

// x: (..., in); weight: (out, in); bias: (out) or undefined. Returns (..., out), or undefined if not supported.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
// grad: (..., out). Returns (..., in), or undefined if not supported.
at::Tensor linear_backward_input(const at::Tensor& grad, const at::Tensor& weight);
// weight_gradient (out, in), fp32, += grad^T x, or = grad^T x if not `adds`. Returns false if not supported.
bool linear_backward_weight(const at::Tensor& x, const at::Tensor& grad, at::Tensor& weight_gradient, bool adds);

// The matrix product a b in `type`, fp32 or bf16. a: (m, k), b: (k, n), both bf16 and row-major or transposed views.
// Returns undefined if not supported.
at::Tensor product(const at::Tensor& a, const at::Tensor& b, at::ScalarType type);

}  // namespace gyre::bf16
