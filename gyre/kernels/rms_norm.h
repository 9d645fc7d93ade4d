// Root-mean-square normalisation over the last dimension (Zhang and Sennrich, 2019): y = x / sqrt(mean(x^2) + eps) *
// weight.
#pragma once

#include <ATen/core/Tensor.h>

namespace gyre {

struct RmsNormResult {
  at::Tensor output;
  at::Tensor rstd;  // (rows); fp32, for fp64 fp64
};
// x: (..., width); weight: (width).
RmsNormResult rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon);
// Its output once more, to the bit, from the rstd that it returned.
at::Tensor rms_norm_output(const at::Tensor& x, const at::Tensor& rstd, const at::Tensor& weight);

struct RmsNormGradients {
  at::Tensor input;   // of x's shape
  at::Tensor weight;  // (width), of the statistics' type
};
RmsNormGradients rms_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& rstd,
                                   const at::Tensor& weight);

namespace portable {
RmsNormResult rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon);
at::Tensor rms_norm_output(const at::Tensor& x, const at::Tensor& rstd, const at::Tensor& weight);
RmsNormGradients rms_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& rstd,
                                   const at::Tensor& weight);
}  // namespace portable

}  // namespace gyre
