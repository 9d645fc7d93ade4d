// Kernels of gyre's own for CUDA, where libtorch's functions would pass over memory several times. Each returns whether
// it did its work: not for tensors elsewhere or of other types, nor in a build without CUDA's compiler, whose functions
// (missing.cpp) do nothing.
#pragma once

#include <ATen/core/Tensor.h>

#include "gyre/core/random.h"
#include "gyre/kernels/activation.h"
#include "gyre/kernels/adam.h"
#include "gyre/kernels/layer_norm.h"
#include "gyre/kernels/rms_norm.h"
#include "gyre/kernels/rotary.h"

namespace gyre::cuda {

// As gyre::cross_entropy_in_place, whose result becomes `loss`. The loss of a target out of
// range is NaN, and so is its row of the gradient.
bool cross_entropy_in_place(at::Tensor& logits, const at::Tensor& targets, double weight, at::Tensor& loss);
// Whether cross_entropy_in_place serves CUDA tensors, with no temporaries of the logits' size.
bool has_cross_entropy();

// As gyre::dropout_mask, to the bit.
bool dropout_mask(const at::Tensor& x, double probability, const RandomStream& stream, at::Tensor& mask);

// As fused::adam.
bool adam(const at::Tensor& weight, const at::Tensor& gradient, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
          const fused::AdamPass& pass);

// As gyre::rotate_in_place (direction 1) and rotate_back_in_place (-1), to the bit.
bool rotate(at::Tensor& x, const RotaryAngles& angles, float direction);

bool layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon,
                LayerNormResult& result);
bool layer_norm_output(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& rstd, const at::Tensor& weight,
                       const at::Tensor& bias, at::Tensor& output);
bool layer_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& mean, const at::Tensor& rstd,
                         const at::Tensor& weight, LayerNormGradients& result);
bool rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon, RmsNormResult& result);
bool rms_norm_output(const at::Tensor& x, const at::Tensor& rstd, const at::Tensor& weight, at::Tensor& output);
bool rms_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& rstd, const at::Tensor& weight,
                       RmsNormGradients& result);

// As gyre::linear_backward_bias.
bool linear_backward_bias(const at::Tensor& grad, at::Tensor& bias_gradient, bool adds);

bool activate(const at::Tensor& x, Activation activation, at::Tensor& output);
bool activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation, ActivationBackward& result);
bool gated_activate(const at::Tensor& x, Activation activation, at::Tensor& output);
bool gated_activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation,
                             ActivationBackward& result);

}  // namespace gyre::cuda
