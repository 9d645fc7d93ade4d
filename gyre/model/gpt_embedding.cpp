// The first layer: token embedding plus learned position, with dropout.
#include <ATen/ATen.h>

#include "gyre/kernels/dropout.h"
#include "gyre/kernels/embedding.h"
#include "gyre/model/gpt_layers.h"

namespace gyre {
namespace {

class GptEmbedding final : public Layer {
 public:
  explicit GptEmbedding(const GptConfig& config) : config_(config) {}

  const std::string& name() const override { return name_; }

  std::vector<ParameterSpec> parameters() const override {
    return {matrix_spec("token.weight", config_.vocabulary, config_.width, kInitialDeviation, false),
            matrix_spec("position.weight", config_.context, config_.width, kInitialDeviation, false)};
  }

  // input: (batch, context) int64 tokens. Returns (batch, context, width).
  at::Tensor forward(const WeightView& weights, const at::Tensor& input, const LayerContext& context,
                     Saved& saved) const override {
    const at::Tensor positions = weights[1].narrow(0, 0, input.size(1));
    at::Tensor x = embed(weights[0], input).add_(positions);
    at::Tensor mask;
    if (context.training && config_.dropout > 0) {
      mask = dropout_mask(x, config_.dropout,
                          RandomStream(context.seed, StreamPurpose::Dropout, static_cast<uint64_t>(context.microbatch),
                                       static_cast<uint32_t>(context.layer) * 4));
      x.mul_(mask);
    }
    saved.tensors = {input, mask};
    return x;
  }

  at::Tensor backward_input(const WeightView&, const at::Tensor& grad_output, Saved& saved) const override {
    const at::Tensor& mask = saved.tensors[1];
    saved.tensors = {saved.tensors[0], mask.defined() ? grad_output * mask : grad_output};
    return {};  // tokens have no gradient
  }

  void backward_weights(Saved& saved, std::span<at::Tensor> gradients) const override {
    const at::Tensor& tokens = saved.tensors[0];
    const at::Tensor& grad = saved.tensors[1];
    embed_backward(grad, tokens, gradients[0]);
    gradients[1].narrow(0, 0, tokens.size(1)).add_(at::sum(grad, {0}, false, gradients[1].scalar_type()));
    saved.tensors.clear();
  }

  double cost(int64_t tokens) const override {
    return static_cast<double>(tokens) * static_cast<double>(config_.width);
  }
  // Tokens, and the dropout's mask.
  double kept_bytes(const MicrobatchShape& shape) const override {
    const double mask = config_.dropout > 0 ? static_cast<double>(config_.width) * shape.element_bytes : 0;
    return shape.tokens() * (kTokenBytes + mask);
  }

 private:
  std::string name_ = "embedding";
  GptConfig config_;
};

}  // namespace

std::shared_ptr<const Layer> make_gpt_embedding(const GptConfig& config) {
  return std::make_shared<GptEmbedding>(config);
}

}  // namespace gyre
