// Adam's pass over weights, gradients and moments on a GPU, by one kernel. optim/parameter/adam_kernel.h says what it
// computes; on the CPU its own loops do.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gyre::fused {

struct AdamPass {
  double beta1 = 0, beta2 = 0, epsilon = 0;
  double correction1 = 1, correction2 = 1;  // 1 - beta1^t, 1 - beta2^t
  double gradient_share = 0;                // NAdam's
  int64_t update = 1;                       // t
  double rate = 0, keep = 1;                // w <- keep w - rate direction
  double factor = 1;                        // of gradients
};

// gradient: fp32, (...); exp_avg, exp_avg_sq: the same shape, both fp32 or both bf16, which are rounded by chance; all
// of them contiguous. weight: fp32; undefined: instead of a step `gradient` becomes the direction. Returns whether it
// was done: not for tensors elsewhere, nor in a build without CUDA's compiler.
bool adam(const at::Tensor& weight, const at::Tensor& gradient, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
          const AdamPass& pass);

}  // namespace gyre::fused
