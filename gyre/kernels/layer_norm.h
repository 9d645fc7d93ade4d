// Layer normalisation over the last dimension (Ba et al., 2016): y = (x - mean) / sqrt(var + eps) * weight + bias.
#pragma once

#include <ATen/core/Tensor.h>

namespace gyre {

struct LayerNormResult {
  at::Tensor output;
  at::Tensor mean, rstd;  // (rows); fp32, for fp64 fp64
};
// x: (..., width); weight: (width); bias: (width) or undefined.
LayerNormResult layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon);
// Its output once more, to the bit, from the statistics that it returned.
at::Tensor layer_norm_output(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& rstd,
                             const at::Tensor& weight, const at::Tensor& bias);

struct LayerNormGradients {
  at::Tensor input;         // of x's shape
  at::Tensor weight, bias;  // (width), of the statistics' type; that by the bias also where there is none
};
LayerNormGradients layer_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& mean,
                                       const at::Tensor& rstd, const at::Tensor& weight);

namespace portable {
LayerNormResult layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon);
at::Tensor layer_norm_output(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& rstd,
                             const at::Tensor& weight, const at::Tensor& bias);
LayerNormGradients layer_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& mean,
                                       const at::Tensor& rstd, const at::Tensor& weight);
}  // namespace portable

}  // namespace gyre
