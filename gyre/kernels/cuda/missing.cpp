// In place of the kernels, in a build without CUDA's compiler or without a libtorch for CUDA.
#include "gyre/kernels/cuda/kernels.h"

namespace gyre::cuda {

bool has_cross_entropy() {
  return false;
}
bool cross_entropy_in_place(at::Tensor& /*logits*/, const at::Tensor& /*targets*/, double /*weight*/,
                            at::Tensor& /*loss*/) {
  return false;
}
bool dropout_mask(const at::Tensor& /*x*/, double /*probability*/, const RandomStream& /*stream*/,
                  at::Tensor& /*mask*/) {
  return false;
}
bool adam(const at::Tensor& /*weight*/, const at::Tensor& /*gradient*/, const at::Tensor& /*exp_avg*/,
          const at::Tensor& /*exp_avg_sq*/, const fused::AdamPass& /*pass*/) {
  return false;
}
bool rotate(at::Tensor& /*x*/, const RotaryAngles& /*angles*/, float /*direction*/) {
  return false;
}
bool layer_norm(const at::Tensor& /*x*/, const at::Tensor& /*weight*/, const at::Tensor& /*bias*/, double /*epsilon*/,
                LayerNormResult& /*result*/) {
  return false;
}
bool layer_norm_output(const at::Tensor& /*x*/, const at::Tensor& /*mean*/, const at::Tensor& /*rstd*/,
                       const at::Tensor& /*weight*/, const at::Tensor& /*bias*/, at::Tensor& /*output*/) {
  return false;
}
bool layer_norm_backward(const at::Tensor& /*grad*/, const at::Tensor& /*x*/, const at::Tensor& /*mean*/,
                         const at::Tensor& /*rstd*/, const at::Tensor& /*weight*/, LayerNormGradients& /*result*/) {
  return false;
}
bool rms_norm(const at::Tensor& /*x*/, const at::Tensor& /*weight*/, double /*epsilon*/, RmsNormResult& /*result*/) {
  return false;
}
bool rms_norm_output(const at::Tensor& /*x*/, const at::Tensor& /*rstd*/, const at::Tensor& /*weight*/,
                     at::Tensor& /*output*/) {
  return false;
}
bool rms_norm_backward(const at::Tensor& /*grad*/, const at::Tensor& /*x*/, const at::Tensor& /*rstd*/,
                       const at::Tensor& /*weight*/, RmsNormGradients& /*result*/) {
  return false;
}
bool linear_backward_bias(const at::Tensor& /*grad*/, at::Tensor& /*bias_gradient*/, bool /*adds*/) {
  return false;
}
bool activate(const at::Tensor& /*x*/, Activation /*activation*/, at::Tensor& /*output*/) {
  return false;
}
bool activate_backward(const at::Tensor& /*grad*/, const at::Tensor& /*x*/, Activation /*activation*/,
                       ActivationBackward& /*result*/) {
  return false;
}
bool gated_activate(const at::Tensor& /*x*/, Activation /*activation*/, at::Tensor& /*output*/) {
  return false;
}
bool gated_activate_backward(const at::Tensor& /*grad*/, const at::Tensor& /*x*/, Activation /*activation*/,
                             ActivationBackward& /*result*/) {
  return false;
}

}  // namespace gyre::cuda
