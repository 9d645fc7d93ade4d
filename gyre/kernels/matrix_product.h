// Matrix products for what no other kernel computes. In fp32 on the CPU they are those of fp32/product.h, if these
// serve; otherwise libtorch's. In bf16 libtorch's take twenty times as long as in fp32 on a CPU without AVX-512, and
// three times on one with AVX-512 but without its instructions for bf16. There, products are computed in fp32 and
// rounded.
#pragma once

#include <ATen/core/Tensor.h>

namespace gyre {

// Whether products of x, if libtorch were to make them, are computed in fp32 though x is bf16.
bool is_widened(const at::Tensor& x);
// Whether those of bf16 tensors on the CPU are.
bool widens_bf16();

// a b, of matrices or of each of a stack of matrices, in their type.
at::Tensor matrix_product(const at::Tensor& a, const at::Tensor& b);

}  // namespace gyre
