// The MLP of a transformer block: a wider hidden layer between two matrices, plain or gated.
#pragma once

#include <string>
#include <tuple>

#include "gyre/kernels/activation.h"
#include "gyre/model/sublayers/linear.h"

namespace gyre {

struct MlpOptions {
  int64_t width = 0, hidden = 0;
  Activation activation = Activation::Gelu;
  // The first matrix computes two hidden layers: a gate, and the values that the activated gate multiplies.
  bool gated = false;
  bool bias = true;
  float out_deviation = kInitialDeviation;
};

class Mlp {
 public:
  using Options = MlpOptions;
  struct Kept {
    Linear::Kept in;
    at::Tensor hidden;  // (..., hidden), gated (..., 2 hidden), before the activation
    Linear::Kept out;
    auto members() const { return std::tie(in, hidden, out); }
  };
  static at::Tensor& input(Kept& kept) { return kept.in.input; }

  // Declares NAME.in and NAME.out.
  Mlp(ParameterList& parameters, const std::string& name, const MlpOptions& options);

  // x: (..., width). Returns the same shape.
  at::Tensor forward(const WeightView& weights, const at::Tensor& x, const LayerContext& context, Kept& kept) const;
  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad, Kept& kept) const;
  void backward_weights(Kept& kept, const GradientSums& gradients) const;
  double cost() const { return in_.cost() + out_.cost(); }
  double kept_bytes(const MicrobatchShape& shape) const;
  double passing_bytes(const MicrobatchShape& shape) const;          // see Layer
  double weights_passing_bytes(const MicrobatchShape& shape) const;  // see Layer
  double split_bytes(const MicrobatchShape& shape) const;            // see Layer

 private:
  double hidden_layers() const { return options_.gated ? 2 : 1; }

  MlpOptions options_;
  Linear in_, out_;
};
static_assert(Sublayer<Mlp>);

}  // namespace gyre
