// Products of bf16 matrices that are summed and left in fp32, by libtorch on CUDA.
#pragma once

#include <ATen/core/Tensor.h>

namespace gyre::fused {

// out = a b, or out += a b if it adds. a: (m, k), b: (k, n), bf16; out: (m, n), fp32. Returns whether it did: on CUDA,
// with libtorch 2.8 or newer, or, if it adds, 2.11.
bool product_in_fp32(const at::Tensor& a, const at::Tensor& b, at::Tensor& out, bool adds);
// a b as a new tensor, or that of each of several matrices, (matrices, rows, columns); undefined if it cannot.
at::Tensor product_in_fp32(const at::Tensor& a, const at::Tensor& b);
// Whether product_in_fp32 can add, with this libtorch.
bool adds_in_place();

}  // namespace gyre::fused
