// A transformer block. Pre-norm (GPT-2): y = x + attention(norm1(x)), z = y + mlp(norm2(y)).
// Post-norm (BERT, Vaswani et al., 2017): y = norm1(x + attention(x)), z = norm2(y + mlp(y)).
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>

#include "gyre/kernels/activation.h"
#include "gyre/kernels/attention.h"
#include "gyre/kernels/dropout.h"
#include "gyre/kernels/linear.h"
#include "gyre/kernels/normalization.h"
#include "gyre/model/transformer_layers.h"

namespace gyre {
namespace {

// Parameters without biases; with biases each is followed by its own.
enum Matrix { kNorm1, kQkv, kProjection, kNorm2, kMlpIn, kMlpOut, kMatrices };

// What the forward keeps.
enum ForwardSaved {
  kNorm1Input,  // (batch, context, width)
  kMean1,
  kDeviation1,
  kQkvInput,
  kHeads,  // q, k, v per head
  kProbabilities,
  kAttended,  // (batch, context, width): attention's output before the projection
  kMask1,     // dropout of the attention branch; undefined without
  kNorm2Input,
  kMean2,
  kDeviation2,
  kMlpInput,
  kHidden,  // (batch, context, mlp width), before the activation
  kActivated,
  kMask2,
  kForwardSaved
};

// What the input half of the backward leaves for the weight half: for each matrix its input and its output's gradient.
enum BackwardSaved {
  kNorm1Weight,
  kNorm1Bias,
  kQkvLeft,
  kQkvGrad,
  kProjectionLeft,
  kProjectionGrad,
  kNorm2Weight,
  kNorm2Bias,
  kMlpInLeft,
  kMlpInGrad,
  kMlpOutLeft,
  kMlpOutGrad,
  kBackwardSaved
};

class TransformerBlock final : public Layer {
 public:
  TransformerBlock(const BlockConfig& config, int number)
      : name_(fmt::format("blocks.{}", number)), config_(config), activation_(activation_by_name(config.activation)) {}

  const std::string& name() const override { return name_; }

  std::vector<ParameterSpec> parameters() const override {
    const int64_t width = config_.width, mlp = config_.mlp_width;
    // The two matrices that write to the residual stream start smaller the more of them there are (GPT-2).
    const auto residual = static_cast<float>(kInitialDeviation / std::sqrt(2.0 * config_.layers));
    std::vector<ParameterSpec> specs;
    const auto with_bias = [&](ParameterSpec spec, const char* bias) {
      const int64_t size = spec.shape[0];
      specs.push_back(std::move(spec));
      if (config_.bias) specs.push_back(vector_spec(bias, size, Initialization::Kind::Zeros));
    };
    with_bias(vector_spec("norm1.weight", width, Initialization::Kind::Ones), "norm1.bias");
    with_bias(matrix_spec("attention.qkv.weight", 3 * width, width, kInitialDeviation, true, 3), "attention.qkv.bias");
    with_bias(matrix_spec("attention.projection.weight", width, width, residual, true), "attention.projection.bias");
    with_bias(vector_spec("norm2.weight", width, Initialization::Kind::Ones), "norm2.bias");
    with_bias(matrix_spec("mlp.in.weight", mlp, width, kInitialDeviation, true), "mlp.in.bias");
    with_bias(matrix_spec("mlp.out.weight", width, mlp, residual, true), "mlp.out.bias");
    return specs;
  }

  // input: (batch, context, width). Returns the same shape.
  at::Tensor forward(const WeightView& weights, const at::Tensor& input, const LayerContext& context,
                     Saved& saved) const override {
    std::vector<at::Tensor> keep(kForwardSaved);
    const at::Tensor qkv_input = config_.post_norm ? input : normalise(input, weights, kNorm1, keep);
    const auto attended =
        attention(linear(qkv_input, weight(weights, kQkv), bias(weights, kQkv)), config_.heads, config_.causal);
    at::Tensor y = linear(attended.output, weight(weights, kProjection), bias(weights, kProjection));
    keep[kMask1] = drop_out(y, context, 0);
    y.add_(input);
    if (config_.post_norm) y = normalise(y, weights, kNorm1, keep);

    const at::Tensor mlp_input = config_.post_norm ? y : normalise(y, weights, kNorm2, keep);
    keep[kHidden] = linear(mlp_input, weight(weights, kMlpIn), bias(weights, kMlpIn));
    keep[kActivated] = activate(keep[kHidden], activation_);
    at::Tensor z = linear(keep[kActivated], weight(weights, kMlpOut), bias(weights, kMlpOut));
    keep[kMask2] = drop_out(z, context, 1);
    z.add_(y);
    if (config_.post_norm) z = normalise(z, weights, kNorm2, keep);

    keep[kQkvInput] = qkv_input;
    keep[kHeads] = attended.heads;
    keep[kProbabilities] = attended.probabilities;
    keep[kAttended] = attended.output;
    keep[kMlpInput] = mlp_input;
    saved.tensors = std::move(keep);
    return z;
  }

  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad_output, Saved& saved) const override {
    const std::vector<at::Tensor> kept = std::move(saved.tensors);
    std::vector<at::Tensor> leave(kBackwardSaved);

    // By z before its norm, if that comes last.
    const at::Tensor grad_z =
        config_.post_norm ? normalise_backward(grad_output, weights, kNorm2, kept, leave) : grad_output;
    leave[kMlpOutGrad] = masked(grad_z, kept[kMask2]);
    leave[kMlpOutLeft] = kept[kActivated];
    const at::Tensor grad_activated = linear_backward_input(leave[kMlpOutGrad], weight(weights, kMlpOut));
    leave[kMlpInGrad] = activate_backward(grad_activated, kept[kHidden], activation_);
    leave[kMlpInLeft] = kept[kMlpInput];
    at::Tensor grad_y = linear_backward_input(leave[kMlpInGrad], weight(weights, kMlpIn));
    if (!config_.post_norm) grad_y = normalise_backward(grad_y, weights, kNorm2, kept, leave);
    grad_y.add_(grad_z);
    if (config_.post_norm) grad_y = normalise_backward(grad_y, weights, kNorm1, kept, leave);

    leave[kProjectionGrad] = masked(grad_y, kept[kMask1]);
    leave[kProjectionLeft] = kept[kAttended];
    const at::Tensor grad_attended = linear_backward_input(leave[kProjectionGrad], weight(weights, kProjection));
    leave[kQkvGrad] = attention_backward(grad_attended, kept[kHeads], kept[kProbabilities], config_.causal);
    leave[kQkvLeft] = kept[kQkvInput];
    at::Tensor grad_x = linear_backward_input(leave[kQkvGrad], weight(weights, kQkv));
    if (!config_.post_norm) grad_x = normalise_backward(grad_x, weights, kNorm1, kept, leave);
    saved.tensors = std::move(leave);
    return grad_x.add_(grad_y);
  }

  void backward_weights(Saved& saved, std::span<at::Tensor> gradients) const override {
    const std::vector<at::Tensor> kept = std::move(saved.tensors);
    saved.tensors.clear();
    const auto add_norm = [&](Matrix which, int weight_gradient, int bias_gradient) {
      gradients[index(which)].add_(kept[weight_gradient]);
      if (config_.bias) gradients[index(which) + 1].add_(kept[bias_gradient]);
    };
    const auto add_linear = [&](Matrix which, int input, int grad) {
      linear_backward_weight(kept[input], kept[grad], gradients[index(which)]);
      if (config_.bias) linear_backward_bias(kept[grad], gradients[index(which) + 1]);
    };
    add_norm(kNorm1, kNorm1Weight, kNorm1Bias);
    add_linear(kQkv, kQkvLeft, kQkvGrad);
    add_linear(kProjection, kProjectionLeft, kProjectionGrad);
    add_norm(kNorm2, kNorm2Weight, kNorm2Bias);
    add_linear(kMlpIn, kMlpInLeft, kMlpInGrad);
    add_linear(kMlpOut, kMlpOutLeft, kMlpOutGrad);
  }

  double cost(int64_t tokens) const override {
    const auto width = static_cast<double>(config_.width);
    const double matrices = 4 * width * width + 2 * width * static_cast<double>(config_.mlp_width);
    return static_cast<double>(tokens) * (matrices + 2 * width * static_cast<double>(config_.context));
  }
  // Of a token: inputs of both norms and of three matrices, q, k and v; the hidden layer before and after its
  // activation; its row of every head's probabilities; masks; the norms' statistics.
  double kept_bytes(const MicrobatchShape& shape) const override {
    const double masks = config_.dropout > 0 ? 2 : 0;
    const double elements = (8 + masks) * static_cast<double>(config_.width) +
                            2 * static_cast<double>(config_.mlp_width) +
                            static_cast<double>(config_.heads) * shape.context;
    return shape.tokens() * (elements * shape.element_bytes + 2 * kNormBytes);
  }

 private:
  size_t index(Matrix which) const {
    return config_.bias ? 2 * static_cast<size_t>(which) : static_cast<size_t>(which);
  }
  const at::Tensor& weight(const WeightView& weights, Matrix which) const { return weights[index(which)]; }
  at::Tensor bias(const WeightView& weights, Matrix which) const {
    return config_.bias ? weights[index(which) + 1] : at::Tensor();
  }

  // which: kNorm1 or kNorm2.
  at::Tensor normalise(const at::Tensor& x, const WeightView& weights, Matrix which,
                       std::vector<at::Tensor>& keep) const {
    const auto norm = layer_norm(x, weight(weights, which), bias(weights, which), config_.epsilon);
    const int first = which == kNorm1 ? kNorm1Input : kNorm2Input;
    keep[first] = x;
    keep[first + 1] = norm.mean;
    keep[first + 2] = norm.rstd;
    return norm.output;
  }
  // Returns the gradient by the norm's input; leaves those by its weight and bias.
  at::Tensor normalise_backward(const at::Tensor& grad, const WeightView& weights, Matrix which,
                                const std::vector<at::Tensor>& kept, std::vector<at::Tensor>& leave) const {
    const int first = which == kNorm1 ? kNorm1Input : kNorm2Input;
    auto norm = layer_norm_backward(grad, kept[first], kept[first + 1], kept[first + 2], weight(weights, which),
                                    bias(weights, which));
    const int left = which == kNorm1 ? kNorm1Weight : kNorm2Weight;
    leave[left] = norm.weight;
    leave[left + 1] = norm.bias;
    return norm.input;
  }

  // Drops part of `branch` in place; returns the mask, undefined when there is no dropout. `site` is 0 or 1.
  at::Tensor drop_out(at::Tensor& branch, const LayerContext& context, uint32_t site) const {
    if (!context.training || config_.dropout == 0) return {};
    const RandomStream stream(context.seed, StreamPurpose::Dropout, static_cast<uint64_t>(context.microbatch),
                              static_cast<uint32_t>(context.layer) * 4 + site);
    at::Tensor mask = dropout_mask(branch, config_.dropout, stream);
    branch.mul_(mask);
    return mask;
  }
  static at::Tensor masked(const at::Tensor& grad, const at::Tensor& mask) {
    return mask.defined() ? grad * mask : grad;
  }

  std::string name_;
  BlockConfig config_;
  Activation activation_;
};

}  // namespace

std::shared_ptr<const Layer> make_transformer_block(const BlockConfig& config, int number) {
  return std::make_shared<TransformerBlock>(config, number);
}

}  // namespace gyre
