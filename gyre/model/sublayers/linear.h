// A linear map: y = x W^T + b.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "gyre/model/sublayers/parameters.h"
#include "gyre/model/sublayers/sublayer.h"

namespace gyre {

struct LinearOptions {
  int64_t out = 0, in = 0;
  bool bias = true;
  float deviation = kInitialDeviation;   // of the initial weights
  bool rotate = false;                   // see ParameterSpec
  std::vector<int64_t> row_blocks = {};  // see ParameterSpec
  std::string tied_to = {};              // see ParameterSpec
};

class Linear {
 public:
  struct Kept {
    at::Tensor input;        // (..., in)
    at::Tensor grad_output;  // set by backward_input for backward_weights
    auto members() const { return std::tie(input, grad_output); }
  };

  // Declares NAME.weight and, with a bias, NAME.bias.
  Linear(ParameterList& parameters, const std::string& name, const LinearOptions& options);

  // x: (..., in). Returns (..., out).
  at::Tensor forward(const WeightView& weights, const at::Tensor& x, const LayerContext& context, Kept& kept) const;
  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad, Kept& kept) const;
  void backward_weights(Kept& kept, const GradientSums& gradients) const;
  double cost() const { return out_ * in_; }
  double kept_bytes(const MicrobatchShape& shape) const { return shape.tokens() * in_ * shape.element_bytes; }
  // Of temporary fp32 matrices in backward_weights: the product, where a bf16 one cannot be added to a sum in place, or
  // the factors, where products of bf16 are computed in fp32; else 0.
  double product_bytes(const MicrobatchShape& shape) const;
  // Of those in forward and backward_input: the factors and the result, where products of bf16 are computed in fp32;
  // else 0.
  double wide_bytes(const MicrobatchShape& shape) const;

 private:
  double out_, in_;
  size_t weight_;
  std::optional<size_t> bias_;
};
static_assert(Sublayer<Linear>);

}  // namespace gyre
