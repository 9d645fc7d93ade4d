// libtorch's matrix products, for what no kernel of gyre's computes. In bf16 on the CPU libtorch needs AVX-512:
// without, its loops take some twenty times as long as a product in fp32. There, products are computed in fp32 and
// rounded.
#pragma once

#include <ATen/core/Tensor.h>

namespace gyre {

// Whether products of x are computed in fp32 though x is bf16.
bool is_widened(const at::Tensor& x);

// a b, of matrices or of each of a stack of matrices, in their type.
at::Tensor matrix_product(const at::Tensor& a, const at::Tensor& b);

}  // namespace gyre
