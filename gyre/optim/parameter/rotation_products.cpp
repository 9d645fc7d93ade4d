#include "gyre/optim/parameter/rotation_products.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "gyre/kernels/bf16/linear.h"
#include "gyre/optim/parameter/mixed_kernels.h"

namespace gyre {
namespace {

bool in_bf16(const at::Tensor& a, const at::Tensor& b, bool wanted) {
  return wanted && std::min({a.size(0), a.size(1), b.size(1)}) >= kBf16From;
}

// Of rounded factors, summed and left in fp32; undefined: it cannot.
at::Tensor summed_in_fp32(const at::Tensor& a, const at::Tensor& b, bool in_half) {
  if (!a.is_cpu() || !in_bf16(a, b, in_half)) return {};
  const at::Tensor rounded_a = to_bf16(a), rounded_b = to_bf16(b);
  at::Tensor result = bf16::product(rounded_a, rounded_b, at::kFloat);
  if (result.defined()) return result;
  // As oneDNN makes gradients of weights.
  result = at::empty({a.size(0), b.size(1)}, a.options().dtype(at::kFloat));
  return bf16::linear_backward_weight(rounded_b, rounded_a.t(), result, false) ? result : at::Tensor();
}

}  // namespace

at::Tensor product(const at::Tensor& a, const at::Tensor& b, bool in_half) {
  if (in_bf16(a, b, in_half)) {
    const at::Tensor rounded_a = to_bf16(a), rounded_b = to_bf16(b);
    const at::Tensor result = bf16::product(rounded_a, rounded_b, at::kBFloat16);
    return result.defined() ? result : at::mm(rounded_a, rounded_b);
  }
  return at::mm(a.to(at::kFloat), b.to(at::kFloat));
}

at::Tensor portable::product_in_fp32(const at::Tensor& a, const at::Tensor& b, bool in_half) {
  if (!in_bf16(a, b, in_half)) return at::mm(a.to(at::kFloat), b.to(at::kFloat));
  return at::mm(to_bf16(a).to(at::kFloat), to_bf16(b).to(at::kFloat));
}

at::Tensor product_in_fp32(const at::Tensor& a, const at::Tensor& b, bool in_half) {
  const at::Tensor result = summed_in_fp32(a, b, in_half);
  return result.defined() ? result : portable::product_in_fp32(a, b, in_half);
}

at::Tensor product_in_either(const at::Tensor& a, const at::Tensor& b, bool in_half) {
  const at::Tensor result = summed_in_fp32(a, b, in_half);
  return result.defined() ? result : product(a, b, in_half);
}

}  // namespace gyre
