// Checks tensors, makes results and starts the kernels on the current stream.
#include "gyre/kernels/cuda/kernels.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <cmath>
#include <optional>
#include <vector>

#include "gyre/kernels/cuda/launch.h"
#include "gyre/kernels/dropout.h"

namespace gyre::cuda {
namespace {

// The type in which kernels know x; null if there are none for it.
std::optional<Type> type_of(const at::Tensor& x) {
  if (!x.is_cuda()) return std::nullopt;
  if (x.scalar_type() == at::kFloat) return Type::Float;
  if (x.scalar_type() == at::kBFloat16) return Type::BFloat16;
  return std::nullopt;
}

// Starts a kernel on x's device.
template <typename... Work>
void start_on(const at::Tensor& x, const Work&... work) {
  const c10::DeviceGuard guard(x.device());
  launch(work..., c10::cuda::getCurrentCUDAStream(x.get_device()));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
// The same, in x's type.
template <typename... Work>
void start(const at::Tensor& x, const Work&... work) {
  start_on(x, work..., *type_of(x));
}

// (..., n) -> (..., factor n / divisor)
at::Tensor empty_rows(const at::Tensor& like, int64_t factor, int64_t divisor = 1) {
  std::vector<int64_t> sizes = like.sizes().vec();
  sizes.back() = sizes.back() * factor / divisor;
  return at::empty(sizes, like.options());
}

// x: (..., n), or (..., 2 n) if gated; contiguous. Without grad the forward.
ActivationBackward activated(const at::Tensor& grad, const at::Tensor& x, Activation activation, bool gated) {
  const int64_t width = gated ? 2 : 1;
  ActivationBackward result;
  result.output = empty_rows(x, 1, width);
  Activated work;
  work.x = x.data_ptr();
  work.y = result.output.data_ptr();
  work.n = x.size(-1) / width;
  work.rows = work.n == 0 ? 0 : result.output.numel() / work.n;
  work.gated = gated;
  if (grad.defined()) {
    result.grad = at::empty(x.sizes(), x.options());
    work.grad = grad.data_ptr();
    work.grad_x = result.grad.data_ptr();
  }
  start(x, work, activation);
  return result;
}

// Whether all are on x's device. Undefined ones do not matter.
template <typename... Tensors>
bool is_beside(const at::Tensor& x, const Tensors&... others) {
  return ((!others.defined() || others.device() == x.device()) && ...);
}

// Whether kernels can take all of them: contiguous, of one type, on one device.
template <typename... Tensors>
bool can_take(const at::Tensor& x, const Tensors&... others) {
  return type_of(x).has_value() && x.is_contiguous() && x.numel() > 0 && is_beside(x, others...) &&
         ((!others.defined() || (others.is_contiguous() && others.scalar_type() == x.scalar_type())) && ...);
}

float* floats(const at::Tensor& x) {
  return x.defined() ? x.data_ptr<float>() : nullptr;
}
void* data(const at::Tensor& x) {
  return x.defined() ? x.data_ptr() : nullptr;
}

int64_t rows_of(const at::Tensor& x) {
  return x.numel() / x.size(-1);
}

at::Tensor statistics_for(const at::Tensor& x) {
  return at::empty({rows_of(x)}, x.options().dtype(at::kFloat));
}

// The norm's output. Statistics are read if `known`, else written; an RMSNorm has no mean.
at::Tensor normed(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& rstd, const at::Tensor& weight,
                  const at::Tensor& bias, double epsilon, bool known) {
  at::Tensor y = at::empty(x.sizes(), x.options());
  start(x, NormForward{.x = x.data_ptr(),
                       .weight = weight.data_ptr(),
                       .bias = data(bias),
                       .y = y.data_ptr(),
                       .mean = floats(mean),
                       .rstd = floats(rstd),
                       .rows = rows_of(x),
                       .width = x.size(-1),
                       .epsilon = static_cast<float>(epsilon),
                       .has_statistics = known});
  return y;
}

at::Tensor norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& mean, const at::Tensor& rstd,
                         const at::Tensor& weight) {
  at::Tensor grad_x = at::empty(x.sizes(), x.options());
  start(x, NormBackward{.grad = grad.data_ptr(),
                        .x = x.data_ptr(),
                        .weight = weight.data_ptr(),
                        .grad_x = grad_x.data_ptr(),
                        .mean = floats(mean),
                        .rstd = floats(rstd),
                        .rows = rows_of(x),
                        .width = x.size(-1)});
  return grad_x;
}

// Writes the sums that are given, or adds them.
struct SumsOf {
  at::Tensor grad, x, mean, rstd;  // all but grad only for sums of the normed
};
void sum_columns(const SumsOf& of, const at::Tensor& plain, const at::Tensor& of_normed, bool adds) {
  const int64_t rows = rows_of(of.grad), width = of.grad.size(-1);
  const int64_t pieces = column_sum_pieces(rows, width);
  const at::Tensor scratch = at::empty({of.x.defined() ? 2 : 1, pieces, width}, of.grad.options().dtype(at::kFloat));
  start(of.grad, ColumnSums{.grad = of.grad.data_ptr(),
                            .x = data(of.x),
                            .mean = floats(of.mean),
                            .rstd = floats(of.rstd),
                            .plain = floats(plain),
                            .normed = floats(of_normed),
                            .pieces = scratch.data_ptr<float>(),
                            .rows = rows,
                            .width = width,
                            .count_pieces = pieces,
                            .adds = adds});
}

at::Tensor sums_for(const at::Tensor& x) {
  return at::empty({x.size(-1)}, x.options().dtype(at::kFloat));
}

}  // namespace

bool has_cross_entropy() {
  return true;
}

bool cross_entropy_in_place(at::Tensor& logits, const at::Tensor& targets, double weight, at::Tensor& loss) {
  if (!can_take(logits) || !is_beside(logits, targets)) return false;
  const at::Tensor contiguous_targets = targets.contiguous();
  const at::Tensor losses = at::empty({logits.size(0)}, logits.options().dtype(at::kDouble));
  start(logits, CrossEntropy{.logits = logits.data_ptr(),
                             .targets = contiguous_targets.data_ptr<int64_t>(),
                             .losses = losses.data_ptr<double>(),
                             .rows = logits.size(0),
                             .width = logits.size(1),
                             .weight = static_cast<float>(weight)});
  loss = losses.sum();
  return true;
}

bool dropout_mask(const at::Tensor& x, double probability, const RandomStream& stream, at::Tensor& mask) {
  if (!x.is_cuda() || x.numel() == 0) return false;
  mask = at::empty(x.sizes(), x.options().dtype(at::kBool));
  start_on(mask, DropoutMask{.mask = mask.data_ptr<bool>(),
                             .count = mask.numel(),
                             .counter = stream.counter(0),
                             .key = stream.key(),
                             .threshold = dropout_threshold(probability)});
  return true;
}

bool rotate(at::Tensor& x, const RotaryAngles& angles, float direction) {
  if (!type_of(x) || x.stride(-1) != 1 || angles.cos.scalar_type() != at::kFloat) return false;
  if (!is_beside(x, angles.cos, angles.sin)) return false;
  const at::Tensor cos = angles.cos.contiguous(), sin = angles.sin.contiguous();
  start(x, Rotation{.x = x.data_ptr(),
                    .cos = cos.data_ptr<float>(),
                    .sin = sin.data_ptr<float>(),
                    .direction = direction,
                    .batch = x.size(0),
                    .heads = x.size(1),
                    .positions = x.size(2),
                    .half = x.size(3) / 2,
                    .sequence_stride = x.stride(0),
                    .head_stride = x.stride(1),
                    .position_stride = x.stride(2)});
  return true;
}

bool adam(const at::Tensor& weight, const at::Tensor& gradient, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
          const fused::AdamPass& pass) {
  const auto is_single = [](const at::Tensor& x) { return !x.defined() || x.scalar_type() == at::kFloat; };
  if (!can_take(exp_avg, exp_avg_sq) || !is_single(weight) || !is_single(gradient)) return false;
  const auto fits = [&](const at::Tensor& x) {
    return !x.defined() || (x.is_contiguous() && x.numel() == exp_avg.numel() && x.device() == exp_avg.device());
  };
  if (!fits(weight) || !fits(gradient)) return false;
  start(exp_avg, Adam{.weight = floats(weight),
                      .gradient = floats(gradient),
                      .exp_avg = exp_avg.data_ptr(),
                      .exp_avg_sq = exp_avg_sq.data_ptr(),
                      .count = exp_avg.numel(),
                      .beta1 = static_cast<float>(pass.beta1),
                      .rest1 = static_cast<float>(1 - pass.beta1),
                      .beta2 = static_cast<float>(pass.beta2),
                      .rest2 = static_cast<float>(1 - pass.beta2),
                      .inverse1 = static_cast<float>(1 / pass.correction1),
                      .inverse_root2 = static_cast<float>(1 / std::sqrt(pass.correction2)),
                      .epsilon = static_cast<float>(pass.epsilon),
                      .gradient_share = static_cast<float>(pass.gradient_share),
                      .rate = static_cast<float>(pass.rate),
                      .keep = static_cast<float>(pass.keep),
                      .factor = static_cast<float>(pass.factor),
                      .update = static_cast<uint32_t>(pass.update)});
  return true;
}

bool layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon,
                LayerNormResult& result) {
  if (!can_take(x, weight, bias)) return false;
  result.mean = statistics_for(x);
  result.rstd = statistics_for(x);
  result.output = normed(x, result.mean, result.rstd, weight, bias, epsilon, /*known=*/false);
  return true;
}

bool layer_norm_output(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& rstd, const at::Tensor& weight,
                       const at::Tensor& bias, at::Tensor& output) {
  if (!can_take(x, weight, bias) || !is_beside(x, mean, rstd)) return false;
  output = normed(x, mean, rstd, weight, bias, 0, /*known=*/true);
  return true;
}

bool layer_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& mean, const at::Tensor& rstd,
                         const at::Tensor& weight, LayerNormGradients& result) {
  if (!can_take(x, grad, weight) || !is_beside(x, mean, rstd)) return false;
  result = {norm_backward(grad, x, mean, rstd, weight), sums_for(x), sums_for(x)};
  sum_columns({grad, x, mean, rstd}, result.bias, result.weight, /*adds=*/false);
  return true;
}

bool rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon, RmsNormResult& result) {
  if (!can_take(x, weight)) return false;
  result.rstd = statistics_for(x);
  result.output = normed(x, {}, result.rstd, weight, {}, epsilon, /*known=*/false);
  return true;
}

bool rms_norm_output(const at::Tensor& x, const at::Tensor& rstd, const at::Tensor& weight, at::Tensor& output) {
  if (!can_take(x, weight) || !is_beside(x, rstd)) return false;
  output = normed(x, {}, rstd, weight, {}, 0, /*known=*/true);
  return true;
}

bool rms_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& rstd, const at::Tensor& weight,
                       RmsNormGradients& result) {
  if (!can_take(x, grad, weight) || !is_beside(x, rstd)) return false;
  result = {norm_backward(grad, x, {}, rstd, weight), sums_for(x)};
  sum_columns({grad, x, {}, rstd}, {}, result.weight, /*adds=*/false);
  return true;
}

bool linear_backward_bias(const at::Tensor& grad, at::Tensor& bias_gradient, bool adds) {
  const bool is_plain = bias_gradient.scalar_type() == at::kFloat && bias_gradient.is_contiguous();
  if (!can_take(grad) || !is_plain || !is_beside(grad, bias_gradient)) return false;
  sum_columns({grad, {}, {}, {}}, bias_gradient, {}, adds);
  return true;
}

bool activate(const at::Tensor& x, Activation activation, at::Tensor& output) {
  if (!can_take(x)) return false;
  output = activated({}, x, activation, false).output;
  return true;
}

bool activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation, ActivationBackward& result) {
  if (!can_take(x, grad)) return false;
  result = activated(grad, x, activation, false);
  return true;
}

bool gated_activate(const at::Tensor& x, Activation activation, at::Tensor& output) {
  if (!can_take(x)) return false;
  output = activated({}, x, activation, true).output;
  return true;
}

bool gated_activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation,
                             ActivationBackward& result) {
  if (!can_take(x, grad)) return false;
  result = activated(grad, x, activation, true);
  return true;
}

}  // namespace gyre::cuda
