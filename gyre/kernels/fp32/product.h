// Products of fp32 matrices on the CPU by oneDNN, where it may use AVX-512. Debian 12's OpenBLAS uses half of the
// vectors' width on CPUs that are newer than it, such as AMD's. If the CPU, the build, the types or the device do not
// allow it, these functions say so, and the caller uses libtorch's products.
#pragma once

#include <ATen/core/Tensor.h>

namespace gyre::fp32 {

// As those of bf16/linear.h, of tensors in fp32.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
at::Tensor linear_backward_input(const at::Tensor& grad, const at::Tensor& weight);
bool linear_backward_weight(const at::Tensor& x, const at::Tensor& grad, at::Tensor& weight_gradient, bool adds);

// a b, of matrices or of each of a stack of matrices: (m, k) and (k, n), or (matrices, m, k) and (matrices, k, n); each
// row-major or a transposed view. Returns undefined if not supported.
at::Tensor product(const at::Tensor& a, const at::Tensor& b);

}  // namespace gyre::fp32
