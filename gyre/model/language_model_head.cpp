#include "gyre/model/language_model_head.h"

#include <ATen/ATen.h>

#include <tuple>

#include "gyre/model/layer_of.h"
#include "gyre/model/sublayers/embedding.h"
#include "gyre/model/sublayers/output_loss.h"

namespace gyre {
namespace {

LinearOptions output_options(const LanguageModelHeadConfig& config) {
  LinearOptions output;
  output.out = config.vocabulary;
  output.in = config.norm.width;
  output.bias = false;
  if (config.tied) output.tied_to = kTokenTable;
  return output;
}

class LanguageModelHead {
 public:
  struct Kept {
    Norm::Kept norm;
    OutputLoss::Kept output;
    auto members() const { return std::tie(norm, output); }
  };

  LanguageModelHead(ParameterList& parameters, const LanguageModelHeadConfig& config)
      : norm_(parameters, "norm", config.norm), output_(parameters, "output", output_options(config)) {}

  // input: (batch, context, width). Returns the mean loss, or without targets the logits, (batch, context, vocabulary);
  // when decoding, only those of the last position.
  at::Tensor forward(const WeightView& weights, const at::Tensor& input, const LayerContext& context,
                     Kept& kept) const {
    const at::Tensor x = context.decoding == nullptr ? input : input.narrow(1, input.size(1) - 1, 1).contiguous();
    const at::Tensor normed = norm_.forward(weights, x, context, kept.norm);
    if (!context.targets.defined()) return output_.logits(weights, normed, context);
    return output_.forward(weights, normed, context.targets.reshape({-1}), context, kept.output);
  }
  // grad_output: 0-dim, the weight of this microbatch's loss.
  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad_output, Kept& kept) const {
    return norm_.backward_input(weights, output_.backward_input(weights, grad_output, kept.output), kept.norm);
  }
  void backward_weights(Kept& kept, const GradientSums& gradients) const {
    norm_.backward_weights(kept.norm, gradients);
    output_.backward_weights(kept.output, gradients);
  }
  at::Tensor backward(const WeightView& weights, const at::Tensor& grad_output, Kept& kept,
                      const GradientSums& gradients) const {
    const at::Tensor grad_normed = output_.backward(weights, grad_output, kept.output, gradients);
    at::Tensor grad_input = norm_.backward_input(weights, grad_normed, kept.norm);
    norm_.backward_weights(kept.norm, gradients);
    return grad_input;
  }
  double cost() const { return output_.cost(); }
  bool decodes() const { return true; }
  // The norm's two gradients are left out: they come after the output's temporaries are freed.
  double passing_bytes(const MicrobatchShape& shape) const { return output_.passing_bytes(shape); }
  double split_bytes(const MicrobatchShape& shape) const { return output_.split_bytes(shape); }
  double kept_bytes(const MicrobatchShape& shape) const { return norm_.kept_bytes(shape) + output_.kept_bytes(shape); }

 private:
  Norm norm_;
  OutputLoss output_;
};

}  // namespace

std::shared_ptr<const Layer> make_language_model_head(const LanguageModelHeadConfig& config) {
  return std::make_shared<LayerOf<LanguageModelHead>>(LayerName("head"), config);
}

}  // namespace gyre
