// Products of bf16 matrices that are summed and left in fp32, by libtorch on GPUs.
#pragma once

#include <ATen/core/Tensor.h>

namespace gyre::fused {

// out = a b. a: (m, k), b: (k, n), bf16; out: (m, n), fp32. Returns whether it did: on CUDA, with libtorch 2.8 or
// newer.
bool product_in_fp32(const at::Tensor& a, const at::Tensor& b, at::Tensor& out);
// The same as a new tensor; undefined if it cannot.
at::Tensor product_in_fp32(const at::Tensor& a, const at::Tensor& b);

}  // namespace gyre::fused
