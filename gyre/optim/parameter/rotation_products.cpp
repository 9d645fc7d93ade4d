#include "gyre/optim/parameter/rotation_products.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "gyre/kernels/bf16/linear.h"
#include "gyre/optim/parameter/mixed_kernels.h"

namespace gyre {
namespace {

bool in_bf16(const at::Tensor& a, const at::Tensor& b, bool bf16) {
  return bf16 && std::min({a.size(0), a.size(1), b.size(1)}) >= kBf16From;
}

// As it makes gradients of weights, fp32; undefined: it cannot.
at::Tensor by_onednn(const at::Tensor& a, const at::Tensor& b, bool bf16) {
  if (!a.is_cpu() || !in_bf16(a, b, bf16)) return {};
  at::Tensor result = at::empty({a.size(0), b.size(1)}, a.options().dtype(at::kFloat));
  return bf16::linear_backward_weight(to_bf16(b), to_bf16(a).t(), result, false) ? result : at::Tensor();
}

}  // namespace

at::Tensor product(const at::Tensor& a, const at::Tensor& b, bool bf16) {
  if (in_bf16(a, b, bf16)) return at::mm(to_bf16(a), to_bf16(b));
  return at::mm(a.to(at::kFloat), b.to(at::kFloat));
}

at::Tensor portable::product_in_fp32(const at::Tensor& a, const at::Tensor& b, bool bf16) {
  if (!in_bf16(a, b, bf16)) return at::mm(a.to(at::kFloat), b.to(at::kFloat));
  return at::mm(to_bf16(a).to(at::kFloat), to_bf16(b).to(at::kFloat));
}

at::Tensor product_in_fp32(const at::Tensor& a, const at::Tensor& b, bool bf16) {
  const at::Tensor result = by_onednn(a, b, bf16);
  return result.defined() ? result : portable::product_in_fp32(a, b, bf16);
}

at::Tensor product_in_either(const at::Tensor& a, const at::Tensor& b, bool bf16) {
  const at::Tensor result = by_onednn(a, b, bf16);
  return result.defined() ? result : product(a, b, bf16);
}

}  // namespace gyre
