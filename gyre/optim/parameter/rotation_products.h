// The matrix products of basis rotation and of Muon: in fp32, or of factors rounded to bf16, whose products are summed
// in fp32. Of single matrices, or of each of a stack (optim/parameter/stacks.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gyre {

// Products in bf16 are faster from so many rows and columns on.
inline constexpr int64_t kBf16From = 192;

// a b, with `bf16` of rounded factors where that is faster; the result then is bf16 too.
at::Tensor product(const at::Tensor& a, const at::Tensor& b, bool bf16);
// The same with an fp32 result: what the factors' rounding leaves is kept. Where nothing here can, the product itself
// is in fp32.
at::Tensor product_in_fp32(const at::Tensor& a, const at::Tensor& b, bool bf16);
// With an fp32 result where that costs nothing, else as product().
at::Tensor product_in_either(const at::Tensor& a, const at::Tensor& b, bool bf16);

// average <- beta average + (1 - beta) x x^T. average: (size, size), fp32; x: (size, k). Of a large single one on the
// CPU only the lower triangle is averaged, by strips of columns, for little more than half of the work: complete() does
// the rest.
void average_square_into(const at::Tensor& average, const at::Tensor& x, double beta, bool bf16);
// What lies above the diagonal, from what lies below it.
void complete(const at::Tensor& average);

namespace portable {
at::Tensor product_in_fp32(const at::Tensor& a, const at::Tensor& b, bool bf16);
void average_square_into(const at::Tensor& average, const at::Tensor& x, double beta, bool bf16);  // the whole of it
}  // namespace portable

}  // namespace gyre
