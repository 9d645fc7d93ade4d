#include "gyre/kernels/matrix_product.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>

#include "gyre/kernels/fp32/product.h"

namespace gyre {
namespace {

// Whether libtorch leaves a bf16 product to oneDNN, and that uses instructions for bf16. Other processors than x86 have
// products of their own.
bool has_fast_loops() {
#ifdef __x86_64__
  return at::globalContext().userEnabledMkldnn() && at::hasMKLDNN() && __builtin_cpu_supports("avx512bf16");
#else
  return true;
#endif
}

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor result = fp32::product(a, b);
  if (result.defined()) return result;
  return a.dim() > 2 ? at::bmm(a, b) : at::mm(a, b);
}

}  // namespace

bool is_widened(const at::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == at::kBFloat16 && widens_bf16();
}

bool widens_bf16() {
  return !has_fast_loops();
}

at::Tensor matrix_product(const at::Tensor& a, const at::Tensor& b) {
  if (!is_widened(a)) return product(a, b);
  return product(a.to(at::kFloat), b.to(at::kFloat)).to(a.scalar_type());
}

}  // namespace gyre
