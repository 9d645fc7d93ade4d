// Gradient norms and clipping, in a summation order that no partition changes. Norms are tensors on the gradients'
// device, where those of several owners are summed; the owner of the gradient then reads the norm.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace gyre {

// (n) fp64: one sum of squares per tensor, each a function of the tensor alone.
at::Tensor squared_norms(std::span<const at::Tensor> gradients);
// 0-dim fp64: the norm of all the tensors that several such vectors are of. The sum runs from the first number to the
// last.
at::Tensor whole_norm(std::span<const at::Tensor> squared_norms);
// What scales gradients of norm `norm` to max_norm at most: 1 if they are no longer than that, else max_norm /
// (norm + 1e-6), as torch.nn.utils.clip_grad_norm_.
double clip_factor(double norm, double max_norm);
// Scales gradients of norm `norm` by that factor.
void clip(std::span<const at::Tensor> gradients, double norm, double max_norm);

namespace portable {
at::Tensor squared_norms(std::span<const at::Tensor> gradients);
at::Tensor whole_norm(std::span<const at::Tensor> squared_norms);
}  // namespace portable

}  // namespace gyre
