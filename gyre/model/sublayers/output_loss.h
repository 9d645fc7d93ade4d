// The end of a model: the output matrix and the mean cross-entropy of its logits. With a large vocabulary logits are by
// far the largest tensor of a model, so they exist only while they are used: a microbatch in flight keeps none, a
// backward in one call holds those of some rows at a time, and a forward that need not return the loss computes none.
#pragma once

#include <string>
#include <tuple>

#include "gyre/model/sublayers/linear.h"

namespace gyre {

class OutputLoss {
 public:
  struct Kept {
    at::Tensor input;     // (..., width)
    at::Tensor targets;   // (rows) int64
    at::Tensor loss;      // 0-dim; defined if the backward adds the loss to it
    Linear::Kept output;  // set by backward_input for backward_weights
    auto members() const { return std::tie(input, targets, loss, output); }
  };

  // Declares NAME.weight and, with a bias, NAME.bias. rows_at_once: how many rows of logits exist at a time; 0: 2,048
  // on the CPU, 8,192 on GPUs.
  OutputLoss(ParameterList& parameters, const std::string& name, const LinearOptions& options,
             int64_t rows_at_once = 0);

  // x: (..., width). Returns (..., vocabulary).
  at::Tensor logits(const WeightView& weights, const at::Tensor& x, const LayerContext& context) const;

  // x: (..., width), with as many rows as `targets` has entries, which are tokens. Returns the mean loss, 0-dim. In
  // training with LayerContext::loss_in_backward it returns zero, and the backward adds the loss to that tensor.
  at::Tensor forward(const WeightView& weights, const at::Tensor& x, const at::Tensor& targets,
                     const LayerContext& context, Kept& kept) const;
  // grad_loss: 0-dim, on the host. Logits and loss are computed with these weights, whatever version the forward read.
  // If the halves are called separately, the gradient of all rows' logits is held between them.
  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad_loss, Kept& kept) const;
  void backward_weights(Kept& kept, const GradientSums& gradients) const;
  at::Tensor backward(const WeightView& weights, const at::Tensor& grad_loss, Kept& kept,
                      const GradientSums& gradients) const;

  double cost() const { return output_.cost(); }
  double kept_bytes(const MicrobatchShape& shape) const;     // for shape.tokens() rows
  double passing_bytes(const MicrobatchShape& shape) const;  // see Layer
  double split_bytes(const MicrobatchShape& shape) const;    // see Layer

 private:
  template <typename PieceDone>
  at::Tensor backward_in_pieces(const WeightView& weights, const at::Tensor& grad_loss, Kept& kept, int64_t pieces,
                                PieceDone&& piece_done) const;

  int64_t rows_at_once(bool on_host) const;
  int64_t count_pieces(const at::Tensor& targets) const;

  int64_t width_, vocabulary_, rows_at_once_;
  Linear output_;
};

}  // namespace gyre
