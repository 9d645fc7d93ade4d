// Gradient norms and clipping, in a summation order that no partition changes.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

namespace gyre {

// One sum of squares per tensor, in fp64. A function of the tensor alone.
std::vector<double> squared_norms(std::span<const at::Tensor> gradients);
// Their sum, from first to last. The square root of it is the norm.
double combine(std::span<const double> squared_norms);
// What to multiply gradients of norm `norm` with so that it is at most `most`: 1 if it is already, else
// most / (norm + 1e-6), as torch.nn.utils.clip_grad_norm_.
double clip_factor(double norm, double most);
void scale(std::span<const at::Tensor> gradients, double factor);

}  // namespace gyre
