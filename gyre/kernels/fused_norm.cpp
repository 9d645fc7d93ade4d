#include "gyre/kernels/fused_norm.h"

#include <ATen/ATen.h>

#include <array>
#include <stdexcept>
#include <utility>

#include "gyre/kernels/portable.h"

namespace gyre::fused {
namespace {

// libtorch's functions are found by their arguments' namespace, so that a version without them is no error.
template <typename Tensor>
constexpr bool kHasRmsNorm = requires(const Tensor& x, at::IntArrayRef shape) {
  _fused_rms_norm(x, shape, x, 0.0);
  _fused_rms_norm_backward(x, x, shape, x, x, std::array<bool, 2>{});
};

template <typename Tensor>
std::pair<Tensor, Tensor> forward(const Tensor& x, const Tensor& weight, double epsilon) {
  if constexpr (kHasRmsNorm<Tensor>) {
    auto [output, rstd] = _fused_rms_norm(x, weight.sizes(), weight, epsilon);
    return {output, rstd};
  } else {
    throw std::logic_error("this libtorch has no _fused_rms_norm");
  }
}

template <typename Tensor>
std::pair<Tensor, Tensor> backward(const Tensor& grad, const Tensor& x, const Tensor& rstd, const Tensor& weight) {
  if constexpr (kHasRmsNorm<Tensor>) {
    auto [input, by_weight] = _fused_rms_norm_backward(grad, x, weight.sizes(), rstd, weight, {true, true});
    return {input, by_weight};
  } else {
    throw std::logic_error("this libtorch has no _fused_rms_norm_backward");
  }
}

using portable::rows_of;
using portable::wide_type;

// The statistics as libtorch returned them: (rows, 1).
at::Tensor column(const at::Tensor& statistics) {
  return statistics.unsqueeze(-1);
}

}  // namespace

LayerNormResult layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon) {
  const auto [output, mean, rstd] = at::native_layer_norm(rows_of(x), weight.sizes(), weight, bias, epsilon);
  return {output.view(x.sizes()), mean.view({-1}), rstd.view({-1})};
}

LayerNormGradients layer_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& mean,
                                       const at::Tensor& rstd, const at::Tensor& weight) {
  const at::Tensor& bias = weight;  // its type and length are all that is read of it
  const auto [input, by_weight, by_bias] = at::native_layer_norm_backward(
      rows_of(grad), rows_of(x), weight.sizes(), column(mean), column(rstd), weight, bias, {true, true, true});
  return {input.view(x.sizes()), by_weight.to(wide_type(x)), by_bias.to(wide_type(x))};
}

bool has_rms_norm() {
  return kHasRmsNorm<at::Tensor>;
}

RmsNormResult rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  const auto [output, rstd] = forward(rows_of(x), weight, epsilon);
  return {output.view(x.sizes()), rstd.view({-1})};
}

RmsNormGradients rms_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& rstd,
                                   const at::Tensor& weight) {
  const auto [input, by_weight] = backward(rows_of(grad), rows_of(x), column(rstd), weight);
  return {input.view(x.sizes()), by_weight.to(wide_type(x))};
}

}  // namespace gyre::fused
