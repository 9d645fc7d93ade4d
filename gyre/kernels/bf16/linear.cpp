#include "gyre/kernels/bf16/linear.h"

#include <ATen/ATen.h>

#include "gyre/kernels/bf16/product.h"
#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/factor.h"

namespace gyre::bf16 {
namespace {

bool serves(const at::Tensor& x, const at::Tensor& matrix) {
  return x.is_cpu() && x.scalar_type() == at::kBFloat16 && x.numel() > 0 && cpu::is_plain(matrix, at::kBFloat16) &&
         cpu_serves();
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (!serves(x, weight) || (bias.defined() && !cpu::is_plain(bias, at::kBFloat16))) return {};
  const at::Tensor rows = contiguous_rows(x);
  at::Tensor result = result_like(x, weight.size(0));
  run({Kind::Forward, rows.size(0), rows.size(1), weight.size(0)}, rows.data_ptr(), weight.data_ptr(),
      result.data_ptr(), bias.defined() ? bias.data_ptr() : nullptr);
  return result;
}

at::Tensor linear_backward_input(const at::Tensor& grad, const at::Tensor& weight) {
  if (!serves(grad, weight)) return {};
  const at::Tensor rows = contiguous_rows(grad);
  at::Tensor result = result_like(grad, weight.size(1));
  run({Kind::BackwardInput, rows.size(0), weight.size(1), weight.size(0)}, rows.data_ptr(), weight.data_ptr(),
      result.data_ptr());
  return result;
}

bool linear_backward_weight(const at::Tensor& x, const at::Tensor& grad, at::Tensor& weight_gradient, bool adds) {
  if (!x.is_cpu() || !cpu::is_plain(weight_gradient, at::kFloat)) return false;
  const at::Tensor x_rows = contiguous_rows(x);
  if (!serves(grad, x_rows)) return false;
  const at::Tensor grad_rows = contiguous_rows(grad);
  run({adds ? Kind::AddedWeight : Kind::BackwardWeight, x_rows.size(0), x_rows.size(1), grad_rows.size(1)},
      grad_rows.data_ptr(), x_rows.data_ptr(), weight_gradient.data_ptr());
  return true;
}

at::Tensor product(const at::Tensor& a, const at::Tensor& b, at::ScalarType type) {
  if (!serves_as_factor(a, at::kBFloat16) || !serves_as_factor(b, at::kBFloat16) || !cpu_serves()) return {};
  at::Tensor result = at::empty({a.size(0), b.size(1)}, a.options().dtype(type));
  multiply({a.size(0), b.size(1), a.size(1)}, factor_of<uint16_t>(a), factor_of<uint16_t>(b), type == at::kFloat,
           result.data_ptr());
  return result;
}

}  // namespace gyre::bf16
