// Norms by libtorch's own kernels, one for each direction, as on GPUs: gyre's are loops for the CPU, and ATen's
// operations one by one elsewhere.
#pragma once

#include "gyre/kernels/layer_norm.h"
#include "gyre/kernels/rms_norm.h"

namespace gyre::fused {

// As the functions of the same name (kernels/layer_norm.h, kernels/rms_norm.h), where x and weight have one type.
// Gradients by the weight and bias are rounded to that type before they are fp32.
LayerNormResult layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon);
LayerNormGradients layer_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& mean,
                                       const at::Tensor& rstd, const at::Tensor& weight);

// Whether this libtorch has these functions of RMSNorm; the others throw std::logic_error if not.
bool has_rms_norm();
RmsNormResult rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon);
RmsNormGradients rms_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& rstd,
                                   const at::Tensor& weight);

}  // namespace gyre::fused
