// A transformer block, pre-norm (GPT-2): x + attention(norm(x)), then x + mlp(norm(x)).
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>

#include "gyre/kernels/activation.h"
#include "gyre/kernels/attention.h"
#include "gyre/kernels/dropout.h"
#include "gyre/kernels/linear.h"
#include "gyre/kernels/normalization.h"
#include "gyre/model/gpt_layers.h"

namespace gyre {
namespace {

// Parameters without biases; with biases each is followed by its own.
enum Matrix { kNorm1, kQkv, kProjection, kNorm2, kMlpIn, kMlpOut, kMatrices };

// What the forward keeps.
enum ForwardSaved {
  kX,  // (batch, context, width): the block's input
  kMean1,
  kDeviation1,
  kNormed1,  // norm1(x)
  kHeads,    // q, k, v per head
  kProbabilities,
  kAttended,  // (batch, context, width): attention's output before the projection
  kMask1,     // dropout of the attention branch; undefined without
  kY,         // x + attention
  kMean2,
  kDeviation2,
  kNormed2,  // norm2(y)
  kHidden,   // (batch, context, mlp width), before the activation
  kActivated,
  kMask2,
  kForwardSaved
};

// What the input half of the backward leaves for the weight half: for each matrix its input and its output's gradient.
enum BackwardSaved {
  kNorm1Weight,
  kNorm1Bias,
  kQkvInput,
  kQkvGrad,
  kProjectionInput,
  kProjectionGrad,
  kNorm2Weight,
  kNorm2Bias,
  kMlpInInput,
  kMlpInGrad,
  kMlpOutInput,
  kMlpOutGrad,
  kBackwardSaved
};

class GptBlock final : public Layer {
 public:
  GptBlock(const GptConfig& config, int number)
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
  at::Tensor forward(std::span<const at::Tensor> weights, const at::Tensor& input, const LayerContext& context,
                     Saved& saved) const override {
    std::vector<at::Tensor> keep(kForwardSaved);
    const auto norm1 = layer_norm(input, weight(weights, kNorm1), bias(weights, kNorm1), kLayerNormEpsilon);
    const auto attention =
        causal_attention(linear(norm1.output, weight(weights, kQkv), bias(weights, kQkv)), config_.heads);
    at::Tensor y = linear(attention.output, weight(weights, kProjection), bias(weights, kProjection));
    keep[kMask1] = drop_out(y, context, 0);
    y.add_(input);

    const auto norm2 = layer_norm(y, weight(weights, kNorm2), bias(weights, kNorm2), kLayerNormEpsilon);
    keep[kHidden] = linear(norm2.output, weight(weights, kMlpIn), bias(weights, kMlpIn));
    keep[kActivated] = activate(keep[kHidden], activation_);
    at::Tensor z = linear(keep[kActivated], weight(weights, kMlpOut), bias(weights, kMlpOut));
    keep[kMask2] = drop_out(z, context, 1);
    z.add_(y);

    keep[kX] = input;
    keep[kMean1] = norm1.mean;
    keep[kDeviation1] = norm1.reciprocal_deviation;
    keep[kNormed1] = norm1.output;
    keep[kHeads] = attention.heads;
    keep[kProbabilities] = attention.probabilities;
    keep[kAttended] = attention.output;
    keep[kY] = y;
    keep[kMean2] = norm2.mean;
    keep[kDeviation2] = norm2.reciprocal_deviation;
    keep[kNormed2] = norm2.output;
    saved.tensors = std::move(keep);
    return z;
  }

  at::Tensor backward_input(std::span<const at::Tensor> weights, const at::Tensor& grad_output,
                            Saved& saved) const override {
    const std::vector<at::Tensor> kept = std::move(saved.tensors);
    std::vector<at::Tensor> leave(kBackwardSaved);

    leave[kMlpOutGrad] = masked(grad_output, kept[kMask2]);
    leave[kMlpOutInput] = kept[kActivated];
    const at::Tensor grad_activated = linear_backward_input(leave[kMlpOutGrad], weight(weights, kMlpOut));
    leave[kMlpInGrad] = activate_backward(grad_activated, kept[kHidden], activation_);
    leave[kMlpInInput] = kept[kNormed2];
    const at::Tensor grad_normed2 = linear_backward_input(leave[kMlpInGrad], weight(weights, kMlpIn));
    auto norm2 = layer_norm_backward(grad_normed2, kept[kY], kept[kMean2], kept[kDeviation2], weight(weights, kNorm2),
                                     bias(weights, kNorm2));
    leave[kNorm2Weight] = norm2.weight;
    leave[kNorm2Bias] = norm2.bias;
    const at::Tensor grad_y = norm2.input.add_(grad_output);

    leave[kProjectionGrad] = masked(grad_y, kept[kMask1]);
    leave[kProjectionInput] = kept[kAttended];
    const at::Tensor grad_attended = linear_backward_input(leave[kProjectionGrad], weight(weights, kProjection));
    leave[kQkvGrad] = causal_attention_backward(grad_attended, kept[kHeads], kept[kProbabilities]);
    leave[kQkvInput] = kept[kNormed1];
    const at::Tensor grad_normed1 = linear_backward_input(leave[kQkvGrad], weight(weights, kQkv));
    auto norm1 = layer_norm_backward(grad_normed1, kept[kX], kept[kMean1], kept[kDeviation1], weight(weights, kNorm1),
                                     bias(weights, kNorm1));
    leave[kNorm1Weight] = norm1.weight;
    leave[kNorm1Bias] = norm1.bias;
    saved.tensors = std::move(leave);
    return norm1.input.add_(grad_y);
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
    add_linear(kQkv, kQkvInput, kQkvGrad);
    add_linear(kProjection, kProjectionInput, kProjectionGrad);
    add_norm(kNorm2, kNorm2Weight, kNorm2Bias);
    add_linear(kMlpIn, kMlpInInput, kMlpInGrad);
    add_linear(kMlpOut, kMlpOutInput, kMlpOutGrad);
  }

  double cost(int64_t tokens) const override {
    const auto width = static_cast<double>(config_.width);
    const double matrices = 4 * width * width + 2 * width * static_cast<double>(config_.mlp_width);
    return static_cast<double>(tokens) * (matrices + 2 * width * static_cast<double>(config_.context));
  }

 private:
  size_t index(Matrix which) const {
    return config_.bias ? 2 * static_cast<size_t>(which) : static_cast<size_t>(which);
  }
  const at::Tensor& weight(std::span<const at::Tensor> weights, Matrix which) const { return weights[index(which)]; }
  at::Tensor bias(std::span<const at::Tensor> weights, Matrix which) const {
    return config_.bias ? weights[index(which) + 1] : at::Tensor();
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
  GptConfig config_;
  Activation activation_;
};

}  // namespace

std::shared_ptr<const Layer> make_gpt_block(const GptConfig& config, int number) {
  return std::make_shared<GptBlock>(config, number);
}

}  // namespace gyre
