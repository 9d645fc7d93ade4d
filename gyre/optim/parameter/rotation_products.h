// The matrix products of basis rotation: in fp32, or of factors rounded to bf16, whose products are summed in fp32.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gyre {

// Products in bf16 are faster from so many rows and columns on.
inline constexpr int64_t kBf16From = 192;

// a b, with `bf16` of rounded factors where that is faster; the result then is bf16 too.
at::Tensor product(const at::Tensor& a, const at::Tensor& b, bool bf16);
// The same with an fp32 result: what the factors' rounding leaves is kept. Where nothing here can, the product itself
// is in fp32. Fastest where a is a transposed view, since it is made as gradients of weights are.
at::Tensor product_in_fp32(const at::Tensor& a, const at::Tensor& b, bool bf16);
// For a transposed view: with an fp32 result where that costs nothing, else as product().
at::Tensor product_in_either(const at::Tensor& a, const at::Tensor& b, bool bf16);

namespace portable {
at::Tensor product_in_fp32(const at::Tensor& a, const at::Tensor& b, bool bf16);
}  // namespace portable

}  // namespace gyre
