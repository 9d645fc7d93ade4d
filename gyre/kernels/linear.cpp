#include "gyre/kernels/linear.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>

#include <vector>

#include "gyre/kernels/bf16/linear.h"
#include "gyre/kernels/bf16/product.h"
#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/cuda/kernels.h"
#include "gyre/kernels/fp32/product.h"
#include "gyre/kernels/fused_product.h"
#include "gyre/kernels/matrix_product.h"
#include "gyre/kernels/onednn/product.h"
#include "gyre/kernels/parallel_for.h"
#include "gyre/kernels/portable.h"
#include "gyre/tensors/profile_scope.h"

namespace gyre {
namespace {

// sums (width) += the sum of the rows of x. Takes four rows at a time, for a fourth of the passes over `sums`.
GYRE_CPU_KERNEL void add_rows(const c10::BFloat16* __restrict x, float* __restrict sums, int64_t rows, int64_t width) {
  using cpu::load;
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4, x += 4 * width) {
    const c10::BFloat16 *a = x, *b = a + width, *c = b + width, *d = c + width;
    for (int64_t i = 0; i < width; ++i) sums[i] += (load(a + i) + load(b + i)) + (load(c + i) + load(d + i));
  }
  for (; row < rows; ++row, x += width) {
    for (int64_t i = 0; i < width; ++i) sums[i] += load(x + i);
  }
}

// In fp32; an undefined tensor stays undefined.
at::Tensor wide(const at::Tensor& x) {
  return x.defined() ? x.to(at::kFloat) : x;
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const ProfileScope scope("gyre::linear");
  at::Tensor y = bf16::linear(x, weight, bias);
  if (y.defined()) return y;
  if (is_widened(x)) return linear(wide(x), wide(weight), wide(bias)).to(x.scalar_type());
  y = fp32::linear(x, weight, bias);
  return y.defined() ? y : portable::linear(x, weight, bias);
}

at::Tensor linear_backward_input(const at::Tensor& grad, const at::Tensor& weight) {
  const ProfileScope scope("gyre::linear");
  at::Tensor x = bf16::linear_backward_input(grad, weight);
  if (x.defined()) return x;
  if (is_widened(grad)) return linear_backward_input(wide(grad), wide(weight)).to(grad.scalar_type());
  x = fp32::linear_backward_input(grad, weight);
  return x.defined() ? x : portable::linear_backward_input(grad, weight);
}

void linear_backward_weight(const at::Tensor& x, const at::Tensor& grad, at::Tensor& weight_gradient, bool adds) {
  const ProfileScope scope("gyre::linear");
  if (bf16::linear_backward_weight(x, grad, weight_gradient, adds)) return;
  if (is_widened(grad) && weight_gradient.scalar_type() == at::kFloat) {
    return linear_backward_weight(wide(x), wide(grad), weight_gradient, adds);
  }
  if (fp32::linear_backward_weight(x, grad, weight_gradient, adds)) return;
  portable::linear_backward_weight(x, grad, weight_gradient, adds);
}

void linear_backward_bias(const at::Tensor& grad, at::Tensor& bias_gradient, bool adds) {
  const ProfileScope scope("gyre::bias_gradient");
  if (cuda::linear_backward_bias(grad, bias_gradient, adds)) return;
  if (!cpu::is_plain(grad, at::kBFloat16) || !cpu::is_plain(bias_gradient, at::kFloat)) {
    return portable::linear_backward_bias(grad, bias_gradient, adds);
  }
  const int64_t width = grad.size(-1), rows = grad.numel() / width, parts = cpu::part_count(rows, width);
  const at::Tensor sums = at::zeros({parts, width}, bias_gradient.options());
  const auto* x = grad.data_ptr<c10::BFloat16>();
  auto* const to = sums.data_ptr<float>();
  cpu::for_parts(parts, rows, [&](int64_t part, int64_t begin, int64_t end) {
    add_rows(x + begin * width, to + part * width, end - begin, width);
  });
  const at::Tensor sum = cpu::sum_of_parts(sums);
  adds ? bias_gradient.add_(sum) : bias_gradient.copy_(sum);
}

std::string bf16_products() {
  return bf16::description();
}

std::string fp32_products() {
  return onednn::fp32_description();
}

bool has_fast_bf16_products() {
  return bf16::cpu_serves();
}

void heed_limit_of_instructions() {
  if (onednn::is_limited()) at::globalContext().setUserEnabledMkldnn(false);
}

bool adds_bf16_products_in_place(bool on_host) {
  if (!on_host) return fused::adds_in_place();
  return bf16::cpu_serves() ? bf16::adds_in_place() : widens_bf16();
}

namespace portable {

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return bias.defined() ? at::linear(x, weight, bias) : at::linear(x, weight);
}

at::Tensor linear_backward_input(const at::Tensor& grad, const at::Tensor& weight) {
  return at::matmul(grad, weight);
}

void linear_backward_weight(const at::Tensor& x, const at::Tensor& grad, at::Tensor& weight_gradient, bool adds) {
  const at::Tensor grad_rows = rows_of(grad);
  const at::Tensor x_rows = rows_of(x);
  if (x.scalar_type() == weight_gradient.scalar_type()) {
    weight_gradient.addmm_(grad_rows.t(), x_rows, /*beta=*/adds ? 1 : 0);  // beta 0 ignores old contents
  } else if (!fused::product_in_fp32(grad_rows.t(), x_rows, weight_gradient, adds)) {
    at::Tensor product = fused::product_in_fp32(grad_rows.t(), x_rows);
    if (!product.defined()) product = at::mm(grad_rows.t(), x_rows);
    adds ? weight_gradient.add_(product) : weight_gradient.copy_(product);
  }
}

void linear_backward_bias(const at::Tensor& grad, at::Tensor& bias_gradient, bool adds) {
  const at::Tensor rows = rows_of(grad);
  if (adds) {
    bias_gradient.add_(at::sum(rows, {0}, /*keepdim=*/false, bias_gradient.scalar_type()));
  } else {
    at::sum_out(bias_gradient, rows, {0}, /*keepdim=*/false, bias_gradient.scalar_type());
  }
}

}  // namespace portable

}  // namespace gyre
