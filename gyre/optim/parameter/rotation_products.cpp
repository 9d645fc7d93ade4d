#include "gyre/optim/parameter/rotation_products.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "gyre/kernels/bf16/linear.h"
#include "gyre/kernels/fused_product.h"
#include "gyre/kernels/matrix_product.h"
#include "gyre/optim/parameter/mixed_kernels.h"
#include "gyre/optim/parameter/stacks.h"

namespace gyre {
namespace {

bool in_bf16(const at::Tensor& a, const at::Tensor& b, bool wanted) {
  return wanted && std::min({a.size(-2), a.size(-1), b.size(-1)}) >= kBf16From;
}

// Of single matrices in bf16; undefined: it cannot.
at::Tensor of_the_cpu(const at::Tensor& a, const at::Tensor& b, at::ScalarType type) {
  return is_stack(a) ? at::Tensor() : bf16::product(a, b, type);
}

// Of factors in bf16, summed and left in fp32; undefined: it cannot.
at::Tensor summed_in_fp32(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor result = of_the_cpu(a, b, at::kFloat);
  return result.defined() ? result : fused::product_in_fp32(a, b);
}

// Strips of a symmetric matrix: as narrow as products can be and still be as fast as wide ones.
constexpr int64_t kStrip = 96;

bool goes_by_strips(const at::Tensor& matrix) {
  return matrix.is_cpu() && !is_stack(matrix) && matrix.size(0) > kStrip;
}

// work(begin, length) for every strip of `size` columns.
template <typename Work>
void for_strips(int64_t size, const Work& work) {
  for (int64_t begin = 0; begin < size; begin += kStrip) work(begin, std::min(kStrip, size - begin));
}

}  // namespace

at::Tensor product(const at::Tensor& a, const at::Tensor& b, bool bf16) {
  if (in_bf16(a, b, bf16)) {
    const at::Tensor rounded_a = to_bf16(a), rounded_b = to_bf16(b);
    const at::Tensor result = of_the_cpu(rounded_a, rounded_b, at::kBFloat16);
    return result.defined() ? result : matrix_product(rounded_a, rounded_b);
  }
  return matrix_product(a.to(at::kFloat), b.to(at::kFloat));
}

at::Tensor portable::product_in_fp32(const at::Tensor& a, const at::Tensor& b, bool bf16) {
  if (!in_bf16(a, b, bf16)) return matrix_product(a.to(at::kFloat), b.to(at::kFloat));
  return matrix_product(to_bf16(a).to(at::kFloat), to_bf16(b).to(at::kFloat));
}

at::Tensor product_in_fp32(const at::Tensor& a, const at::Tensor& b, bool bf16) {
  if (!in_bf16(a, b, bf16)) return matrix_product(a.to(at::kFloat), b.to(at::kFloat));
  at::Tensor factor_a = to_bf16(a), factor_b = to_bf16(b);
  const at::Tensor result = summed_in_fp32(factor_a, factor_b);
  if (result.defined()) return result;
  factor_a = factor_a.to(at::kFloat);  // in the place of the rounded one, which nothing holds during the product
  factor_b = factor_b.to(at::kFloat);
  return matrix_product(factor_a, factor_b);
}

at::Tensor product_in_either(const at::Tensor& a, const at::Tensor& b, bool bf16) {
  if (!in_bf16(a, b, bf16)) return product(a, b, bf16);
  const at::Tensor rounded_a = to_bf16(a), rounded_b = to_bf16(b);
  const at::Tensor result = summed_in_fp32(rounded_a, rounded_b);
  return result.defined() ? result : product(rounded_a, rounded_b, bf16);
}

void portable::average_square_into(const at::Tensor& average, const at::Tensor& x, double beta, bool bf16) {
  average_into(average, portable::product_in_fp32(x, x.mT(), bf16), beta);
}

void average_square_into(const at::Tensor& average, const at::Tensor& x, double beta, bool bf16) {
  if (!goes_by_strips(average)) return average_into(average, product_in_fp32(x, x.mT(), bf16), beta);
  const bool rounds = in_bf16(x, x.t(), bf16);
  const at::Tensor rounded = rounds ? to_bf16(x) : x.to(at::kFloat);
  for_strips(x.size(0), [&](int64_t begin, int64_t length) {
    const int64_t rows = x.size(0) - begin;
    const at::Tensor below = rounded.narrow(0, begin, rows), strip = rounded.narrow(0, begin, length).t();
    at::Tensor square = rounds ? bf16::product(below, strip, at::kFloat) : at::Tensor();
    if (!square.defined()) square = matrix_product(below.to(at::kFloat), strip.to(at::kFloat));
    average_into(average.narrow(0, begin, rows).narrow(1, begin, length), square, beta);
  });
}

void complete(const at::Tensor& average) {
  if (!goes_by_strips(average)) return;
  for_strips(average.size(0), [&](int64_t begin, int64_t length) {
    const int64_t end = begin + length, rest = average.size(0) - end;
    average.narrow(0, begin, length)
        .narrow(1, end, rest)
        .copy_(average.narrow(0, end, rest).narrow(1, begin, length).t());
  });
}

}  // namespace gyre
