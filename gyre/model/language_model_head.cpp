#include "gyre/model/language_model_head.h"

#include <ATen/ATen.h>

#include <tuple>
#include <utility>

#include "gyre/kernels/cross_entropy.h"
#include "gyre/model/layer_of.h"
#include "gyre/model/sublayers/embedding.h"
#include "gyre/model/sublayers/linear.h"

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
    Linear::Kept output;
    at::Tensor grad_logits;  // of the mean loss: the backward needs no second pass over the vocabulary
    auto members() const { return std::tie(norm, output, grad_logits); }
  };

  LanguageModelHead(ParameterList& parameters, const LanguageModelHeadConfig& config)
      : vocabulary_(config.vocabulary),
        norm_(parameters, "norm", config.norm),
        output_(parameters, "output", output_options(config)) {}

  // input: (batch, context, width). Returns the mean loss, or (batch, context, vocabulary) logits without targets; of
  // the last position alone when decoding.
  at::Tensor forward(const WeightView& weights, const at::Tensor& input, const LayerContext& context,
                     Kept& kept) const {
    const at::Tensor read = context.decoding == nullptr ? input : input.narrow(1, input.size(1) - 1, 1).contiguous();
    const at::Tensor normed = norm_.forward(weights, read, context, kept.norm);
    at::Tensor logits = output_.forward(weights, normed, context, kept.output);
    if (!context.targets.defined()) return logits;
    at::Tensor rows = logits.view({-1, vocabulary_});
    at::Tensor loss = cross_entropy_in_place(rows, context.targets.reshape({-1}).to(input.device()));
    kept.grad_logits = std::move(logits);
    return loss;
  }
  // grad_output: 0-dim, the weight of this microbatch's loss.
  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad_output, Kept& kept) const {
    at::Tensor grad_logits = std::exchange(kept.grad_logits, {});
    cross_entropy_backward_in_place(grad_logits, grad_output);
    return norm_.backward_input(weights, output_.backward_input(weights, grad_logits, kept.output), kept.norm);
  }
  void backward_weights(Kept& kept, const GradientSums& gradients) const {
    norm_.backward_weights(kept.norm, gradients);
    output_.backward_weights(kept.output, gradients);
  }
  double cost() const { return output_.cost(); }
  bool decodes() const { return true; }
  // Gradients by what comes in, by the norm's output and by its input.
  double passing_bytes(const MicrobatchShape& shape) const { return 3 * output_.kept_bytes(shape); }
  double kept_bytes(const MicrobatchShape& shape) const {
    const double logits = shape.tokens() * static_cast<double>(vocabulary_) * shape.element_bytes;
    return norm_.kept_bytes(shape) + output_.kept_bytes(shape) + logits;
  }

 private:
  int64_t vocabulary_;
  Norm norm_;
  Linear output_;
};

}  // namespace

std::shared_ptr<const Layer> make_language_model_head(const LanguageModelHeadConfig& config) {
  return std::make_shared<LayerOf<LanguageModelHead>>(LayerName("head"), config);
}

}  // namespace gyre
