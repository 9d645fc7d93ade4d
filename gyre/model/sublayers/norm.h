// Normalisation over the last dimension, with a weight and perhaps a bias.
#pragma once

#include <optional>
#include <string>
#include <tuple>

#include "gyre/model/sublayers/parameters.h"
#include "gyre/model/sublayers/sublayer.h"

namespace gyre {

struct NormOptions {
  int64_t width = 0;
  bool bias = true;
  double epsilon = 1e-5;
};

class Norm {
 public:
  struct Kept {
    at::Tensor input, mean, rstd;
    at::Tensor grad_weight, grad_bias;  // left for the weights
    auto members() const { return std::tie(input, mean, rstd, grad_weight, grad_bias); }
  };

  // Declares NAME.weight and NAME.bias.
  Norm(ParameterList& parameters, const std::string& name, const NormOptions& options);

  at::Tensor forward(const WeightView& weights, const at::Tensor& x, const LayerContext& context, Kept& kept) const;
  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad, Kept& kept) const;
  void backward_weights(Kept& kept, std::span<at::Tensor> gradients) const;
  double cost() const { return 0; }  // little beside a matrix
  double kept_bytes(const MicrobatchShape& shape) const {
    constexpr double kStatistics = 2 * 4;  // mean and rstd of a token, fp32
    return shape.tokens() * (static_cast<double>(options_.width) * shape.element_bytes + kStatistics);
  }

 private:
  at::Tensor bias(const WeightView& weights) const { return bias_ ? weights[*bias_] : at::Tensor(); }

  NormOptions options_;
  size_t weight_;
  std::optional<size_t> bias_;
};
static_assert(Sublayer<Norm>);

}  // namespace gyre
