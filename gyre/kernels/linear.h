// The linear map y = x W^T + b, and the two halves of its backward. Matrices are (out, in).
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace gyre {

// x: (..., in); weight: (out, in); bias: (out) or undefined. Returns (..., out).
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
// grad: (..., out). Returns (..., in).
at::Tensor linear_backward_input(const at::Tensor& grad, const at::Tensor& weight);
// weight_gradient (out, in) += grad^T x, or = grad^T x if not `adds`, in the type of weight_gradient, from factors in
// the type of x and grad. Whether the product is rounded to that type before it is added depends on the device.
void linear_backward_weight(const at::Tensor& x, const at::Tensor& grad, at::Tensor& weight_gradient, bool adds = true);
// bias_gradient (out) += grad summed over all rows, or = that sum if not `adds`.
void linear_backward_bias(const at::Tensor& grad, at::Tensor& bias_gradient, bool adds = true);

// What computes bf16 matrix products on this CPU, e.g. "gyre (AMX)" or "oneDNN 2.6.3 (AVX-512)".
std::string bf16_products();
// The same of fp32: "oneDNN 2.6.3 (AVX-512)", or "libtorch".
std::string fp32_products();
// Whether the CPU has bf16 instructions that gyre or oneDNN uses. If not, libtorch's slower products are used.
bool has_fast_bf16_products();
// To be called before other threads compute. libtorch leaves bf16 products to oneDNN wherever the CPU has AVX-512. If
// ONEDNN_MAX_CPU_ISA forbids oneDNN to use it, they throw, and if it forbids the instructions for bf16, they are slow.
// Then this tells libtorch to do without oneDNN.
void heed_limit_of_instructions();
// Whether linear_backward_weight adds bf16 products directly to the gradient: what computes them may do so on the CPU,
// and libtorch from 2.11 on does on a GPU. If not, each product is first computed into a temporary matrix.
bool adds_bf16_products_in_place(bool on_host);

namespace portable {
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
at::Tensor linear_backward_input(const at::Tensor& grad, const at::Tensor& weight);
void linear_backward_weight(const at::Tensor& x, const at::Tensor& grad, at::Tensor& weight_gradient, bool adds = true);
void linear_backward_bias(const at::Tensor& grad, at::Tensor& bias_gradient, bool adds = true);
}  // namespace portable

}  // namespace gyre
