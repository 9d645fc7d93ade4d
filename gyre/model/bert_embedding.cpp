// The first layer of a BERT: token, position and token-type embeddings, summed, normalised, dropped out.
#include <ATen/ATen.h>

#include "gyre/kernels/dropout.h"
#include "gyre/kernels/embedding.h"
#include "gyre/kernels/normalization.h"
#include "gyre/model/bert_layers.h"

namespace gyre {
namespace {

class BertEmbedding final : public Layer {
 public:
  explicit BertEmbedding(const BertConfig& config) : config_(config) {}

  const std::string& name() const override { return name_; }

  std::vector<ParameterSpec> parameters() const override {
    return {matrix_spec("token.weight", config_.vocabulary, config_.width, kInitialDeviation, false),
            matrix_spec("position.weight", config_.context, config_.width, kInitialDeviation, false),
            matrix_spec("type.weight", 2, config_.width, kInitialDeviation, false),
            vector_spec("norm.weight", config_.width, Initialization::Kind::Ones),
            vector_spec("norm.bias", config_.width, Initialization::Kind::Zeros)};
  }

  // input: (batch, context) int64 tokens. Returns (batch, context, width).
  at::Tensor forward(const WeightView& weights, const at::Tensor& input, const LayerContext& context,
                     Saved& saved) const override {
    // 0 up to and with the first separator, 1 after it.
    const at::Tensor separators = input.eq(config_.separator).to(at::kLong);
    const at::Tensor types = separators.cumsum(1).sub_(separators).clamp_max_(1);
    at::Tensor x = embed(weights[0], input).add_(weights[1].narrow(0, 0, input.size(1))).add_(embed(weights[2], types));
    auto norm = layer_norm(x, weights[3], weights[4], kBertNormEpsilon);
    at::Tensor mask;
    if (context.training && config_.dropout > 0) {
      mask = dropout_mask(norm.output, config_.dropout,
                          RandomStream(context.seed, StreamPurpose::Dropout, static_cast<uint64_t>(context.microbatch),
                                       static_cast<uint32_t>(context.layer) * 4));
      norm.output.mul_(mask);
    }
    saved.tensors = {input, types, x, norm.mean, norm.rstd, mask};
    return norm.output;
  }

  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad_output, Saved& saved) const override {
    const std::vector<at::Tensor> kept = std::move(saved.tensors);
    const at::Tensor grad = kept[5].defined() ? grad_output * kept[5] : grad_output;
    auto norm = layer_norm_backward(grad, kept[2], kept[3], kept[4], weights[3], weights[4]);
    saved.tensors = {kept[0], kept[1], norm.input, norm.weight, norm.bias};
    return {};  // tokens have no gradient
  }

  void backward_weights(Saved& saved, std::span<at::Tensor> gradients) const override {
    const std::vector<at::Tensor> kept = std::move(saved.tensors);
    saved.tensors.clear();
    const at::Tensor& grad = kept[2];
    embed_backward(grad, kept[0], gradients[0]);
    gradients[1].narrow(0, 0, grad.size(1)).add_(at::sum(grad, {0}, false, gradients[1].scalar_type()));
    embed_backward(grad, kept[1], gradients[2]);
    gradients[3].add_(kept[3]);
    gradients[4].add_(kept[4]);
  }

  double cost(int64_t tokens) const override {
    return static_cast<double>(tokens) * static_cast<double>(config_.width);
  }
  // Tokens and their types, the norm's input and statistics, and the dropout's mask.
  double kept_bytes(const MicrobatchShape& shape) const override {
    const double row = static_cast<double>(config_.width) * shape.element_bytes;
    return shape.tokens() * (2 * kTokenBytes + row + kNormBytes + (config_.dropout > 0 ? row : 0));
  }

 private:
  std::string name_ = "embedding";
  BertConfig config_;
};

}  // namespace

std::shared_ptr<const Layer> make_bert_embedding(const BertConfig& config) {
  return std::make_shared<BertEmbedding>(config);
}

}  // namespace gyre
