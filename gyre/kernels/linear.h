// y = x W^T + b, and its two backward halves. Matrices are (out, in).
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace gyre {

// x: (..., in); weight: (out, in); bias: (out) or undefined. Returns (..., out).
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
// grad: (..., out). Returns (..., in).
at::Tensor linear_backward_input(const at::Tensor& grad, const at::Tensor& weight);
// weight_gradient (out, in) += grad^T x, in the gradient's own type; products in the type of x and grad. Unless it
// `adds`, whatever is in weight_gradient is written over.
void linear_backward_weight(const at::Tensor& x, const at::Tensor& grad, at::Tensor& weight_gradient, bool adds = true);
// bias_gradient (out) += grad summed over all rows.
void linear_backward_bias(const at::Tensor& grad, at::Tensor& bias_gradient);

// What makes bf16 products on this CPU: "gyre (AMX)", "oneDNN 2.6.3 (AVX-512)".
std::string bf16_products();
// Whether it has instructions for them that something here uses; libtorch's products are slower.
bool has_fast_bf16_products();
// Whether linear_backward_weight adds bf16 products where the gradient lies; else each is made by itself before.
bool adds_bf16_products_in_place();

namespace portable {
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
at::Tensor linear_backward_input(const at::Tensor& grad, const at::Tensor& weight);
void linear_backward_weight(const at::Tensor& x, const at::Tensor& grad, at::Tensor& weight_gradient, bool adds = true);
void linear_backward_bias(const at::Tensor& grad, at::Tensor& bias_gradient);
}  // namespace portable

}  // namespace gyre
