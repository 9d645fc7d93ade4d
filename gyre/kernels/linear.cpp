#include "gyre/kernels/linear.h"

#include <ATen/ATen.h>

#include "gyre/kernels/portable.h"

namespace gyre {
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return bias.defined() ? at::linear(x, weight, bias) : at::linear(x, weight);
}

at::Tensor linear_backward_input(const at::Tensor& grad, const at::Tensor& weight) {
  return at::matmul(grad, weight);
}

void linear_backward_weight(const at::Tensor& x, const at::Tensor& grad, at::Tensor& weight_gradient) {
  const at::Tensor grad_rows = portable::rows_of(grad);
  const at::Tensor x_rows = portable::rows_of(x);
  if (x.scalar_type() == weight_gradient.scalar_type()) {
    weight_gradient.addmm_(grad_rows.t(), x_rows);
  } else {
    weight_gradient.add_(at::mm(grad_rows.t(), x_rows));
  }
}

void linear_backward_bias(const at::Tensor& grad, at::Tensor& bias_gradient) {
  bias_gradient.add_(at::sum(portable::rows_of(grad), {0}, /*keepdim=*/false, bias_gradient.scalar_type()));
}

}  // namespace gyre
