// Normalisation over the last dimension: layer norm with a weight and optionally a bias, or RMSNorm with a weight.
#pragma once

#include <optional>
#include <string>
#include <tuple>

#include "gyre/model/sublayers/parameters.h"
#include "gyre/model/sublayers/sublayer.h"

namespace gyre {

enum class NormKind { LayerNorm, RmsNorm };

struct NormOptions {
  NormKind kind = NormKind::LayerNorm;
  int64_t width = 0;
  bool bias = true;  // of a layer norm
  double epsilon = 1e-5;
  // The backward recomputes the output (into Kept::output) for the caller, so that the output need not be saved.
  bool recomputes_output = false;
};

class Norm {
 public:
  struct Kept {
    at::Tensor input, mean, rstd;       // an RMSNorm has no mean
    at::Tensor weight, bias;            // copies of those that the forward read, unless the backward is given them
    at::Tensor output;                  // recomputed by backward_input, for the caller to take
    at::Tensor grad_weight, grad_bias;  // set by backward_input for backward_weights
    auto members() const { return std::tie(input, mean, rstd, weight, bias, output, grad_weight, grad_bias); }
  };

  // Declares NAME.weight and, with a bias, NAME.bias.
  Norm(ParameterList& parameters, const std::string& name, const NormOptions& options);

  at::Tensor forward(const WeightView& weights, const at::Tensor& x, const LayerContext& context, Kept& kept) const;
  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad, Kept& kept) const;
  void backward_weights(Kept& kept, const GradientSums& gradients) const;
  double cost() const { return 0; }  // negligible beside a matrix product
  double kept_bytes(const MicrobatchShape& shape) const;

 private:
  at::Tensor output(const Kept& forward) const;

  NormOptions options_;
  size_t weight_;
  std::optional<size_t> bias_;
};
static_assert(Sublayer<Norm>);

}  // namespace gyre
