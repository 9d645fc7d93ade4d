// LayerOf<Part>: makes a layer of one sublayer.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gyre/model/layer.h"
#include "gyre/model/sublayers/parameters.h"
#include "gyre/model/sublayers/sublayer.h"

namespace gyre {

struct LayerName {
  std::string name, prefix;
  explicit LayerName(std::string name_and_prefix) : name(name_and_prefix), prefix(std::move(name_and_prefix)) {}
  LayerName(std::string layer_name, std::string parameter_prefix)
      : name(std::move(layer_name)), prefix(std::move(parameter_prefix)) {}
};

template <Sublayer Part>
class LayerOf final : public Layer {
 public:
  template <typename... Options>
  explicit LayerOf(LayerName name, const Options&... options)
      : name_(std::move(name)), part_(parameters_, options...) {}

  const std::string& name() const override { return name_.name; }
  const std::string& prefix() const override { return name_.prefix; }
  std::vector<ParameterSpec> parameters() const override { return parameters_.specs(); }

  at::Tensor forward(const WeightView& weights, const at::Tensor& input, const LayerContext& context,
                     Saved& saved) const override {
    typename Part::Kept kept;
    at::Tensor output = part_.forward(weights, input, context, kept);
    if (context.training) saved.keep(std::move(kept));
    return output;
  }
  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad_output, Saved& saved) const override {
    return part_.backward_input(weights, grad_output, saved.get<typename Part::Kept>());
  }
  void backward_weights(Saved& saved, const GradientSums& gradients) const override {
    part_.backward_weights(saved.get<typename Part::Kept>(), gradients);
    saved.clear();
  }
  at::Tensor backward(const WeightView& weights, const at::Tensor& grad_output, Saved& saved,
                      const GradientSums& gradients) const override {
    if constexpr (requires(typename Part::Kept & kept) { part_.backward(weights, grad_output, kept, gradients); }) {
      at::Tensor grad_input = part_.backward(weights, grad_output, saved.get<typename Part::Kept>(), gradients);
      saved.clear();
      return grad_input;
    }
    return Layer::backward(weights, grad_output, saved, gradients);
  }

  // Optional for a part: decodes, passing_bytes, weights_passing_bytes and split_bytes.
  bool decodes() const override {
    if constexpr (requires { part_.decodes(); }) return part_.decodes();
    return false;
  }
  double cost(int64_t tokens) const override { return static_cast<double>(tokens) * part_.cost(); }
  double kept_bytes(const MicrobatchShape& shape) const override { return part_.kept_bytes(shape); }
  double passing_bytes(const MicrobatchShape& shape) const override {
    if constexpr (requires { part_.passing_bytes(shape); }) return part_.passing_bytes(shape);
    return 0;
  }
  double weights_passing_bytes(const MicrobatchShape& shape) const override {
    if constexpr (requires { part_.weights_passing_bytes(shape); }) return part_.weights_passing_bytes(shape);
    return passing_bytes(shape);
  }
  double split_bytes(const MicrobatchShape& shape) const override {
    if constexpr (requires { part_.split_bytes(shape); }) return part_.split_bytes(shape);
    return 0;
  }

 private:
  LayerName name_;
  ParameterList parameters_;
  Part part_;
};

}  // namespace gyre
