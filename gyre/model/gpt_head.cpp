// The last layer: final norm, output matrix (not tied to the embedding), mean cross-entropy.
#include <ATen/ATen.h>

#include "gyre/kernels/cross_entropy.h"
#include "gyre/kernels/linear.h"
#include "gyre/kernels/normalization.h"
#include "gyre/model/gpt_layers.h"

namespace gyre {
namespace {

class GptHead final : public Layer {
 public:
  explicit GptHead(const GptConfig& config) : config_(config) {}

  const std::string& name() const override { return name_; }

  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> specs = {vector_spec("norm.weight", config_.width, Initialization::Kind::Ones)};
    if (config_.bias) specs.push_back(vector_spec("norm.bias", config_.width, Initialization::Kind::Zeros));
    specs.push_back(matrix_spec("output.weight", config_.vocabulary, config_.width, kInitialDeviation, false));
    return specs;
  }

  // input: (batch, context, width). Returns the mean loss, or (batch, context, vocabulary) logits without targets.
  at::Tensor forward(const WeightView& weights, const at::Tensor& input, const LayerContext& context,
                     Saved& saved) const override {
    auto norm = layer_norm(input, weights[0], norm_bias(weights), kLayerNormEpsilon);
    at::Tensor logits = linear(norm.output, weights[weights.size() - 1], at::Tensor());
    if (!context.targets.defined()) return logits;
    at::Tensor rows = logits.view({-1, config_.vocabulary});
    at::Tensor loss = cross_entropy_in_place(rows, context.targets.reshape({-1}));
    // `rows` is now the gradient of the loss by the logits: the backward needs no second pass over the vocabulary.
    saved.tensors = {input, norm.mean, norm.rstd, norm.output, logits};
    return loss;
  }

  // grad_output: 0-dim, the weight of this microbatch's loss.
  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad_output, Saved& saved) const override {
    const std::vector<at::Tensor> kept = std::move(saved.tensors);
    const double factor = grad_output.item<double>();
    const at::Tensor grad_logits = factor == 1 ? kept[4] : kept[4].mul_(factor);
    const at::Tensor grad_normed = linear_backward_input(grad_logits, weights[weights.size() - 1]);
    auto norm = layer_norm_backward(grad_normed, kept[0], kept[1], kept[2], weights[0], norm_bias(weights));
    saved.tensors = {norm.weight, norm.bias, kept[3], grad_logits};
    return norm.input;
  }

  void backward_weights(Saved& saved, std::span<at::Tensor> gradients) const override {
    gradients[0].add_(saved.tensors[0]);
    if (config_.bias) gradients[1].add_(saved.tensors[1]);
    linear_backward_weight(saved.tensors[2], saved.tensors[3], gradients.back());
    saved.tensors.clear();
  }

  double cost(int64_t tokens) const override {
    return static_cast<double>(tokens) * static_cast<double>(config_.width) * static_cast<double>(config_.vocabulary);
  }
  // The norm's input, output and statistics, and the logits.
  double kept_bytes(const MicrobatchShape& shape) const override {
    const double elements = 2 * static_cast<double>(config_.width) + static_cast<double>(config_.vocabulary);
    return shape.tokens() * (elements * shape.element_bytes + kNormBytes);
  }

 private:
  at::Tensor norm_bias(const WeightView& weights) const { return config_.bias ? weights[1] : at::Tensor(); }

  std::string name_ = "head";
  GptConfig config_;
};

}  // namespace

std::shared_ptr<const Layer> make_gpt_head(const GptConfig& config) {
  return std::make_shared<GptHead>(config);
}

}  // namespace gyre
