// The last layer of a BERT: the masked-token head (dense, activation, norm, output matrix) on the positions that are
// asked for, and optionally the sentence-order head on the first position. Its loss is the sum of both means.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "gyre/core/error.h"
#include "gyre/kernels/activation.h"
#include "gyre/kernels/cross_entropy.h"
#include "gyre/kernels/linear.h"
#include "gyre/kernels/normalization.h"
#include "gyre/model/bert_layers.h"

namespace gyre {
namespace {

constexpr double kAskedFor = 0.15;    // of the tokens
constexpr double kNeverAskedFor = 3;  // of a sequence: classify and two separators

// In the order of parameters(); the last four only with the sentence-order head, the final norm only with pre-norm.
enum Parameter {
  kTransform,
  kTransformBias,
  kTransformNorm,
  kTransformNormBias,
  kOutput,
  kOutputBias,
  kPooler,
  kPoolerBias,
  kOrder,
  kOrderBias,
};

// What the forward keeps.
enum ForwardSaved {
  kInput,  // (batch, context, width)
  kMean,   // of the final norm
  kRstd,
  kRows,       // positions asked for, in (batch * context)
  kGathered,   // (rows, width): the encoder's output there
  kDense,      // before the activation
  kActivated,  // after it
  kTransformMean,
  kTransformRstd,
  kNormed,
  kLogits,     // their gradient, once the loss is known
  kFirst,      // (batch, width): the encoder's output at the first position
  kPooled,     // tanh(pooler)
  kOrderGrad,  // gradient of the order's loss by its logits
  kForwardSaved
};

// What backward_input leaves: pairs of a matrix's input and its output's gradient, and gradients of the norms.
enum BackwardSaved {
  kFinalNormWeightGrad,
  kFinalNormBiasGrad,
  kTransformGrad,
  kTransformInput,
  kNormWeightGrad,
  kNormBiasGrad,
  kOutputGrad,
  kOutputInput,
  kPoolerGrad,
  kPoolerInput,
  kOrderLogitsGrad,
  kOrderInput,
  kBackwardSaved
};

class BertHead final : public Layer {
 public:
  explicit BertHead(const BertConfig& config)
      : config_(config), activation_(activation_by_name(config.activation)), first_(config.post_norm ? 0 : 2) {}

  const std::string& name() const override { return name_; }

  std::vector<ParameterSpec> parameters() const override {
    const int64_t width = config_.width;
    const auto zeros = [](const char* name, int64_t size) {
      return vector_spec(name, size, Initialization::Kind::Zeros);
    };
    std::vector<ParameterSpec> specs;
    if (!config_.post_norm) {
      specs.push_back(vector_spec("norm.weight", width, Initialization::Kind::Ones));
      specs.push_back(zeros("norm.bias", width));
    }
    specs.push_back(matrix_spec("transform.weight", width, width, kInitialDeviation, false));
    specs.push_back(zeros("transform.bias", width));
    specs.push_back(vector_spec("transform.norm.weight", width, Initialization::Kind::Ones));
    specs.push_back(zeros("transform.norm.bias", width));
    specs.push_back(matrix_spec("output.weight", config_.vocabulary, width, kInitialDeviation, false));
    specs.push_back(zeros("output.bias", config_.vocabulary));
    if (config_.sentence_order) {
      specs.push_back(matrix_spec("pooler.weight", width, width, kInitialDeviation, false));
      specs.push_back(zeros("pooler.bias", width));
      specs.push_back(matrix_spec("order.weight", 2, width, kInitialDeviation, false));
      specs.push_back(zeros("order.bias", 2));
    }
    return specs;
  }

  // input: (batch, context, width). Returns the loss, or (batch, context, vocabulary) logits without targets.
  at::Tensor forward(const WeightView& weights, const at::Tensor& input, const LayerContext& context,
                     Saved& saved) const override {
    std::vector<at::Tensor> keep(kForwardSaved);
    at::Tensor x = input;
    if (!config_.post_norm) {
      auto norm = layer_norm(input, weights[0], weights[1], kBertNormEpsilon);
      keep[kInput] = input;
      keep[kMean] = norm.mean;
      keep[kRstd] = norm.rstd;
      x = norm.output;
    }
    const at::Tensor flat = x.reshape({-1, config_.width});
    if (!context.targets.defined()) {
      return masked_logits(weights, flat, keep).view({input.size(0), input.size(1), config_.vocabulary});
    }

    // The first position is never masked: its column is the sentence order's.
    const at::Tensor wanted = context.targets.clone();
    wanted.select(1, 0).fill_(-1);
    const at::Tensor targets = wanted.reshape({-1});
    keep[kRows] = at::nonzero(targets.ge(0)).reshape({-1});
    if (keep[kRows].numel() == 0) throw RunError("a microbatch has no masked token");
    keep[kGathered] = flat.index_select(0, keep[kRows]);
    keep[kLogits] = masked_logits(weights, keep[kGathered], keep);
    at::Tensor loss = cross_entropy_in_place(keep[kLogits], targets.index_select(0, keep[kRows]));
    if (config_.sentence_order) {
      keep[kFirst] = x.select(1, 0).contiguous();
      keep[kPooled] = linear(keep[kFirst], weight(weights, kPooler), weight(weights, kPoolerBias)).tanh_();
      keep[kOrderGrad] = linear(keep[kPooled], weight(weights, kOrder), weight(weights, kOrderBias));
      loss.add_(cross_entropy_in_place(keep[kOrderGrad], context.targets.select(1, 0).contiguous()));
    }
    saved.tensors = std::move(keep);
    // The backward needs the shape alone where there is no final norm.
    if (config_.post_norm) saved.tensors[kInput] = at::empty({0, input.size(0), input.size(1)}, input.options());
    return loss;
  }

  // grad_output: 0-dim, the weight of this microbatch's loss.
  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad_output, Saved& saved) const override {
    const std::vector<at::Tensor> kept = std::move(saved.tensors);
    std::vector<at::Tensor> leave(kBackwardSaved);
    const double factor = grad_output.item<double>();
    const int64_t batch = config_.post_norm ? kept[kInput].size(1) : kept[kInput].size(0);
    const int64_t context = config_.post_norm ? kept[kInput].size(2) : kept[kInput].size(1);

    leave[kOutputGrad] = kept[kLogits].mul_(factor);
    leave[kOutputInput] = kept[kNormed];
    const at::Tensor grad_normed = linear_backward_input(leave[kOutputGrad], weight(weights, kOutput));
    auto norm = layer_norm_backward(grad_normed, kept[kActivated], kept[kTransformMean], kept[kTransformRstd],
                                    weight(weights, kTransformNorm), weight(weights, kTransformNormBias));
    leave[kNormWeightGrad] = norm.weight;
    leave[kNormBiasGrad] = norm.bias;
    leave[kTransformGrad] = activate_backward(norm.input, kept[kDense], activation_);
    leave[kTransformInput] = kept[kGathered];
    const at::Tensor grad_rows = linear_backward_input(leave[kTransformGrad], weight(weights, kTransform));
    // Rows are distinct: nothing is added twice, so the order does not matter.
    at::Tensor grad = at::zeros({batch * context, config_.width}, grad_rows.options());
    grad.index_copy_(0, kept[kRows], grad_rows);
    grad = grad.view({batch, context, config_.width});
    if (config_.sentence_order) {
      leave[kOrderLogitsGrad] = kept[kOrderGrad].mul_(factor);
      leave[kOrderInput] = kept[kPooled];
      const at::Tensor grad_pooled = linear_backward_input(leave[kOrderLogitsGrad], weight(weights, kOrder));
      leave[kPoolerGrad] = grad_pooled * (1 - kept[kPooled] * kept[kPooled]);
      leave[kPoolerInput] = kept[kFirst];
      grad.select(1, 0).add_(linear_backward_input(leave[kPoolerGrad], weight(weights, kPooler)));
    }
    if (!config_.post_norm) {
      auto final_norm = layer_norm_backward(grad, kept[kInput], kept[kMean], kept[kRstd], weights[0], weights[1]);
      leave[kFinalNormWeightGrad] = final_norm.weight;
      leave[kFinalNormBiasGrad] = final_norm.bias;
      grad = final_norm.input;
    }
    saved.tensors = std::move(leave);
    return grad;
  }

  void backward_weights(Saved& saved, std::span<at::Tensor> gradients) const override {
    const std::vector<at::Tensor> kept = std::move(saved.tensors);
    saved.tensors.clear();
    const auto add_linear = [&](Parameter matrix, int grad) {
      linear_backward_weight(kept[grad + 1], kept[grad], gradients[index(matrix)]);
      linear_backward_bias(kept[grad], gradients[index(matrix) + 1]);
    };
    if (!config_.post_norm) {
      gradients[0].add_(kept[kFinalNormWeightGrad]);
      gradients[1].add_(kept[kFinalNormBiasGrad]);
    }
    add_linear(kTransform, kTransformGrad);
    gradients[index(kTransformNorm)].add_(kept[kNormWeightGrad]);
    gradients[index(kTransformNormBias)].add_(kept[kNormBiasGrad]);
    add_linear(kOutput, kOutputGrad);
    if (!config_.sentence_order) return;
    add_linear(kPooler, kPoolerGrad);
    add_linear(kOrder, kOrderLogitsGrad);
  }

  double cost(int64_t tokens) const override {
    const auto width = static_cast<double>(config_.width);
    return kAskedFor * static_cast<double>(tokens) * width * (width + static_cast<double>(config_.vocabulary));
  }
  // Of a row that is asked for: its number, what goes into and comes out of the transform and its norm, the logits.
  // With pre-norm also every token's final norm.
  double kept_bytes(const MicrobatchShape& shape) const override {
    const double width = static_cast<double>(config_.width), element = shape.element_bytes;
    const double rows = shape.sequences * std::max(1.0, std::floor(kAskedFor * (shape.context - kNeverAskedFor)));
    const double row = kTokenBytes + kNormBytes + (4 * width + static_cast<double>(config_.vocabulary)) * element;
    return rows * row + (config_.post_norm ? 0 : shape.tokens() * (width * element + kNormBytes));
  }

 private:
  size_t index(Parameter which) const { return static_cast<size_t>(first_) + static_cast<size_t>(which); }
  const at::Tensor& weight(const WeightView& weights, Parameter which) const { return weights[index(which)]; }

  // rows: (rows, width) of the encoder's output. Returns (rows, vocabulary).
  at::Tensor masked_logits(const WeightView& weights, const at::Tensor& rows, std::vector<at::Tensor>& keep) const {
    keep[kDense] = linear(rows, weight(weights, kTransform), weight(weights, kTransformBias));
    keep[kActivated] = activate(keep[kDense], activation_);
    const auto norm = layer_norm(keep[kActivated], weight(weights, kTransformNorm), weight(weights, kTransformNormBias),
                                 kBertNormEpsilon);
    keep[kTransformMean] = norm.mean;
    keep[kTransformRstd] = norm.rstd;
    keep[kNormed] = norm.output;
    return linear(norm.output, weight(weights, kOutput), weight(weights, kOutputBias));
  }

  std::string name_ = "head";
  BertConfig config_;
  Activation activation_;
  int first_;  // index of the transform's matrix
};

}  // namespace

std::shared_ptr<const Layer> make_bert_head(const BertConfig& config) {
  return std::make_shared<BertHead>(config);
}

}  // namespace gyre
