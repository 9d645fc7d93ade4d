// The last layer of a BERT: the masked-token head on the masked positions, and optionally the sentence-order head on
// the first position. Its loss is the sum of the two mean losses.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/kernels/activation.h"
#include "gyre/kernels/cross_entropy.h"
#include "gyre/kernels/embedding.h"
#include "gyre/model/bert_layers.h"
#include "gyre/model/layer_of.h"
#include "gyre/model/sublayers/embedding.h"
#include "gyre/model/sublayers/linear.h"
#include "gyre/model/sublayers/norm.h"
#include "gyre/model/sublayers/output_loss.h"
#include "gyre/tensors/device.h"
#include "gyre/tensors/wide_type.h"

namespace gyre {
namespace {

LinearOptions matrix_options(int64_t out, int64_t in) {
  LinearOptions options;
  options.out = out;
  options.in = in;
  return options;
}

LinearOptions output_options(const BertConfig& config) {
  LinearOptions options = matrix_options(config.vocabulary, config.width);
  if (config.tie) options.tied_to = kTokenTable;
  return options;
}

NormOptions norm_options(const BertConfig& config) {
  return {NormKind::LayerNorm, config.width, true, kBertNormEpsilon};
}

// Dense, activation, norm and output matrix: logits of the whole vocabulary for each row.
class MaskedTokenHead {
 public:
  struct Kept {
    Linear::Kept transform;
    at::Tensor dense;  // before the activation
    Norm::Kept norm;
    OutputLoss::Kept output;
    auto members() const { return std::tie(transform, dense, norm, output); }
  };

  MaskedTokenHead(ParameterList& parameters, const BertConfig& config)
      : width_(static_cast<double>(config.width)),
        activation_(activation_by_name(config.activation)),
        transform_(parameters, "transform", matrix_options(config.width, config.width)),
        norm_(parameters, "transform.norm", norm_options(config)),
        output_(parameters, "output", output_options(config)) {}

  // rows: (rows, width) of the encoder's output. Returns (rows, vocabulary).
  at::Tensor logits(const WeightView& weights, const at::Tensor& rows, const LayerContext& context, Kept& kept) const {
    return output_.logits(weights, transformed(weights, rows, context, kept), context);
  }
  at::Tensor loss(const WeightView& weights, const at::Tensor& rows, const at::Tensor& targets,
                  const LayerContext& context, Kept& kept) const {
    return output_.forward(weights, transformed(weights, rows, context, kept), targets, context, kept.output);
  }
  // grad_loss: 0-dim. Returns the gradient with respect to the rows.
  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad_loss, Kept& kept) const {
    return through_transform(weights, output_.backward_input(weights, grad_loss, kept.output), kept);
  }
  void backward_weights(Kept& kept, const GradientSums& gradients) const {
    transform_.backward_weights(kept.transform, gradients);
    norm_.backward_weights(kept.norm, gradients);
    output_.backward_weights(kept.output, gradients);
  }
  at::Tensor backward(const WeightView& weights, const at::Tensor& grad_loss, Kept& kept,
                      const GradientSums& gradients) const {
    at::Tensor grad = through_transform(weights, output_.backward(weights, grad_loss, kept.output, gradients), kept);
    transform_.backward_weights(kept.transform, gradients);
    norm_.backward_weights(kept.norm, gradients);
    return grad;
  }
  double cost() const { return transform_.cost() + output_.cost(); }
  double passing_bytes(const MicrobatchShape& rows) const { return output_.passing_bytes(rows); }
  double split_bytes(const MicrobatchShape& rows) const { return output_.split_bytes(rows); }
  double kept_bytes(const MicrobatchShape& rows) const {
    return transform_.kept_bytes(rows) + norm_.kept_bytes(rows) + output_.kept_bytes(rows) +
           rows.tokens() * width_ * rows.element_bytes;
  }

 private:
  at::Tensor transformed(const WeightView& weights, const at::Tensor& rows, const LayerContext& context,
                         Kept& kept) const {
    kept.dense = transform_.forward(weights, rows, context, kept.transform);
    return norm_.forward(weights, activate(kept.dense, activation_), context, kept.norm);
  }
  at::Tensor through_transform(const WeightView& weights, const at::Tensor& grad_normed, Kept& kept) const {
    const at::Tensor grad_activated = norm_.backward_input(weights, grad_normed, kept.norm);
    const at::Tensor grad_dense = activate_backward(grad_activated, kept.dense, activation_).grad;
    kept.dense.reset();
    return transform_.backward_input(weights, grad_dense, kept.transform);
  }

  double width_;
  Activation activation_;
  Linear transform_;
  Norm norm_;
  OutputLoss output_;
};

// Pooler (dense and tanh) and a matrix to two logits: whether the segments are in their original order.
class SentenceOrderHead {
 public:
  struct Kept {
    Linear::Kept pooler;
    at::Tensor pooled;  // (batch, width)
    Linear::Kept order;
    at::Tensor grad_logits;  // of the mean loss
    auto members() const { return std::tie(pooler, pooled, order, grad_logits); }
  };

  SentenceOrderHead(ParameterList& parameters, const BertConfig& config)
      : pooler_(parameters, "pooler", matrix_options(config.width, config.width)),
        order_(parameters, "order", matrix_options(2, config.width)) {}

  // first: (batch, width), the encoder's output at the first positions.
  at::Tensor loss(const WeightView& weights, const at::Tensor& first, const at::Tensor& targets,
                  const LayerContext& context, Kept& kept) const {
    kept.pooled = pooler_.forward(weights, first, context, kept.pooler).tanh_();
    kept.grad_logits = order_.forward(weights, kept.pooled, context, kept.order);
    const auto rows = static_cast<double>(targets.size(0));
    const at::Tensor loss = cross_entropy_in_place(kept.grad_logits, targets, 1 / rows).div_(rows);
    return loss.to(wide_type(first));
  }
  // grad_loss: 0-dim. Returns the gradient with respect to `first`.
  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad_loss, Kept& kept) const {
    const at::Tensor grad_logits = std::exchange(kept.grad_logits, {}).mul_(grad_loss);
    const at::Tensor grad_pooled = order_.backward_input(weights, grad_logits, kept.order);
    const at::Tensor pooled = std::exchange(kept.pooled, {});
    return pooler_.backward_input(weights, grad_pooled * (1 - pooled * pooled), kept.pooler);
  }
  void backward_weights(Kept& kept, const GradientSums& gradients) const {
    pooler_.backward_weights(kept.pooler, gradients);
    order_.backward_weights(kept.order, gradients);
  }

 private:
  Linear pooler_, order_;
};

class BertHead {
 public:
  struct Kept {
    Norm::Kept norm;
    at::Tensor rows;  // indices of the masked positions in (batch * context)
    MaskedTokenHead::Kept tokens;
    SentenceOrderHead::Kept order;
    int64_t batch = 0, context = 0;
    auto members() const { return std::tie(norm, rows, tokens, order, batch, context); }
  };

  BertHead(ParameterList& parameters, const BertConfig& config) : config_(config), tokens_(declare(parameters)) {
    if (config.sentence_order) order_.emplace(parameters, config);
  }

  // input: (batch, context, width). Returns the loss, or (batch, context, vocabulary) logits without targets.
  at::Tensor forward(const WeightView& weights, const at::Tensor& input, const LayerContext& context,
                     Kept& kept) const {
    const at::Tensor x = norm_ ? norm_->forward(weights, input, context, kept.norm) : input;
    kept.batch = input.size(0);
    kept.context = input.size(1);
    const at::Tensor flat = x.reshape({-1, config_.width});
    if (!context.targets.defined()) {
      return tokens_.logits(weights, flat, context, kept.tokens).view({kept.batch, kept.context, config_.vocabulary});
    }

    // The first position is never masked: its column is the sentence-order target. Masked positions are found on the
    // host, so that their number is known without waiting for a device.
    const at::Tensor masked_targets = context.targets.clone();
    masked_targets.select(1, 0).fill_(-1);
    const at::Tensor targets = masked_targets.reshape({-1});
    const at::Tensor rows = at::nonzero(targets.ge(0)).reshape({-1});
    if (rows.numel() == 0) throw RunError("a microbatch has no masked token");
    kept.rows = on_device(rows, input.device());
    at::Tensor loss = tokens_.loss(weights, embed(flat, kept.rows),
                                   on_device(targets.index_select(0, rows), input.device()), context, kept.tokens);
    if (order_) {
      loss.add_(order_->loss(weights, x.select(1, 0).contiguous(),
                             on_device(context.targets.select(1, 0).contiguous(), input.device()), context,
                             kept.order));
    }
    return loss;
  }

  // grad_output: 0-dim, the weight of this microbatch's loss.
  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad_output, Kept& kept) const {
    return to_input(weights, tokens_.backward_input(weights, grad_output, kept.tokens), grad_output, kept);
  }
  at::Tensor backward(const WeightView& weights, const at::Tensor& grad_output, Kept& kept,
                      const GradientSums& gradients) const {
    const at::Tensor grad_rows = tokens_.backward(weights, grad_output, kept.tokens, gradients);
    at::Tensor grad_input = to_input(weights, grad_rows, grad_output, kept);
    if (norm_) norm_->backward_weights(kept.norm, gradients);
    if (order_) order_->backward_weights(kept.order, gradients);
    return grad_input;
  }
  void backward_weights(Kept& kept, const GradientSums& gradients) const {
    if (norm_) norm_->backward_weights(kept.norm, gradients);
    tokens_.backward_weights(kept.tokens, gradients);
    if (order_) order_->backward_weights(kept.order, gradients);
  }

  double cost() const { return kMaskedShare * tokens_.cost(); }
  // The larger of the masked rows' bytes and, for all rows, the gradients of the encoder's output and of the norm's
  // input, if there is a norm.
  double passing_bytes(const MicrobatchShape& shape) const {
    const double gradient = shape.tokens() * static_cast<double>(config_.width) * shape.element_bytes;
    return std::max(tokens_.passing_bytes(masked(shape)), norm_ ? 2 * gradient : gradient);
  }
  double split_bytes(const MicrobatchShape& shape) const { return tokens_.split_bytes(masked(shape)); }
  // Leaves out the sentence-order head, which saves next to nothing per sequence.
  double kept_bytes(const MicrobatchShape& shape) const {
    constexpr double kRowNumber = 8;
    const MicrobatchShape rows = masked(shape);
    return (norm_ ? norm_->kept_bytes(shape) : 0) + tokens_.kept_bytes(rows) + rows.tokens() * kRowNumber;
  }

 private:
  // The shape with only the positions of a sequence that are predicted (a lower bound) as its context.
  static MicrobatchShape masked(MicrobatchShape shape) {
    shape.context =
        std::max(1.0, std::floor(kMaskedShare * (shape.context - static_cast<double>(kTokensAroundSegments))));
    return shape;
  }
  // The gradient with respect to the head's input, from that with respect to the masked rows.
  at::Tensor to_input(const WeightView& weights, const at::Tensor& grad_rows, const at::Tensor& grad_output,
                      Kept& kept) const {
    // Rows are distinct, so each is written once and the result does not depend on the order.
    at::Tensor grad = at::zeros({kept.batch * kept.context, config_.width}, grad_rows.options());
    grad.index_copy_(0, std::exchange(kept.rows, {}), grad_rows);
    grad = grad.view({kept.batch, kept.context, config_.width});
    if (order_) grad.select(1, 0).add_(order_->backward_input(weights, grad_output, kept.order));
    return norm_ ? norm_->backward_input(weights, grad, kept.norm) : grad;
  }
  // With pre-norm there is a final norm, whose parameters come first.
  MaskedTokenHead declare(ParameterList& parameters) {
    if (!config_.post_norm()) norm_.emplace(parameters, "norm", norm_options(config_));
    return {parameters, config_};
  }

  BertConfig config_;
  std::optional<Norm> norm_;  // the final norm of a pre-norm model
  MaskedTokenHead tokens_;
  std::optional<SentenceOrderHead> order_;
};

}  // namespace

std::shared_ptr<const Layer> make_bert_head(const BertConfig& config) {
  return std::make_shared<LayerOf<BertHead>>(LayerName("head"), config);
}

}  // namespace gyre
