#include "gyre/kernels/fp32/product.h"

#include <ATen/ATen.h>

#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/factor.h"
#include "gyre/kernels/onednn/product.h"
#include "gyre/kernels/parallel_for.h"
#include "gyre/tensors/profile_scope.h"

namespace gyre::fp32 {
namespace {

bool serves(const at::Tensor& x, const at::Tensor& matrix) {
  return x.is_cpu() && x.scalar_type() == at::kFloat && x.numel() > 0 && cpu::is_plain(matrix, at::kFloat) &&
         onednn::serves_fp32();
}

// c = a b, plus `bias` in every row if it is defined, or c += a b if `adds`. a: (m, k), b: (k, n), c: (m, n),
// contiguous.
void multiply(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias, bool adds, const at::Tensor& c) {
  onednn::multiply({a.size(0), b.size(1), a.size(1)}, factor_of<float>(a), factor_of<float>(b),
                   bias.defined() ? bias.data_ptr<float>() : nullptr, adds, c.data_ptr<float>());
}

// Of stacks of matrices, on all threads.
at::Tensor product_of_stacks(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() == 0 || b.numel() == 0 || !serves_as_factor(a[0], at::kFloat) || !serves_as_factor(b[0], at::kFloat)) {
    return {};
  }
  const at::Tensor result = at::empty({a.size(0), a.size(1), b.size(2)}, a.options());
  const ProductSizes sizes{a.size(1), b.size(2), a.size(2)};
  const FactorOf<float> first_a = factor_of<float>(a[0]), first_b = factor_of<float>(b[0]);
  auto* const results = result.data_ptr<float>();
  const auto shifted = [](FactorOf<float> factor, int64_t by) {
    factor.data += by;
    return factor;
  };
  cpu::parallel_for(a.size(0), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      onednn::multiply(sizes, shifted(first_a, i * a.stride(0)), shifted(first_b, i * b.stride(0)), nullptr,
                       /*adds=*/false, results + i * sizes.m * sizes.n);
    }
  });
  return result;
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (!serves(x, weight) || (bias.defined() && !cpu::is_plain(bias, at::kFloat))) return {};
  const at::Tensor result = result_like(x, weight.size(0));
  multiply(contiguous_rows(x), weight.t(), bias, /*adds=*/false, contiguous_rows(result));
  return result;
}

at::Tensor linear_backward_input(const at::Tensor& grad, const at::Tensor& weight) {
  if (!serves(grad, weight)) return {};
  const at::Tensor result = result_like(grad, weight.size(1));
  multiply(contiguous_rows(grad), weight, {}, /*adds=*/false, contiguous_rows(result));
  return result;
}

bool linear_backward_weight(const at::Tensor& x, const at::Tensor& grad, at::Tensor& weight_gradient, bool adds) {
  if (!cpu::is_plain(weight_gradient, at::kFloat) || x.scalar_type() != at::kFloat) return false;
  if (!serves(grad, weight_gradient)) return false;
  multiply(contiguous_rows(grad).t(), contiguous_rows(x), {}, adds, weight_gradient);
  return true;
}

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  if (!a.is_cpu() || !b.is_cpu() || a.scalar_type() != at::kFloat || b.scalar_type() != at::kFloat) return {};
  if (!onednn::serves_fp32()) return {};
  const ProfileScope scope("gyre::matrix_product");
  if (a.dim() == 3) return product_of_stacks(a, b);
  if (!serves_as_factor(a, at::kFloat) || !serves_as_factor(b, at::kFloat)) return {};
  const at::Tensor result = at::empty({a.size(0), b.size(1)}, a.options());
  multiply(a, b, {}, /*adds=*/false, result);
  return result;
}

}  // namespace gyre::fp32
