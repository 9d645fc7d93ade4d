// The end of a model: the output matrix, and the mean cross-entropy of its logits. Logits are by far the largest tensor
// of a model with a large vocabulary, so they are made where their gradient is needed and gone right after: a
// microbatch in flight keeps none, a backward holds those of some rows at a time, and a forward that is not to say the
// loss makes none.
#pragma once

#include <string>
#include <tuple>

#include "gyre/model/sublayers/linear.h"

namespace gyre {

// Of the mean loss of a model that computes in x's type.
inline at::ScalarType loss_type(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

class OutputLoss {
 public:
  struct Kept {
    at::Tensor input;     // (..., width)
    at::Tensor targets;   // (rows) int64
    at::Tensor loss;      // 0-dim, if the backward is to add the loss to it
    Linear::Kept output;  // between the halves of a backward
    auto members() const { return std::tie(input, targets, loss, output); }
  };

  // Declares NAME.weight and NAME.bias. rows_at_once: how many rows' logits there are at a time; 0: 2,048.
  OutputLoss(ParameterList& parameters, const std::string& name, const LinearOptions& options,
             int64_t rows_at_once = 0);

  // x: (..., width). Returns (..., vocabulary).
  at::Tensor logits(const WeightView& weights, const at::Tensor& x, const LayerContext& context) const;

  // x: (..., width) of as many rows as there are targets, each a row of the vocabulary. Returns the mean loss, 0-dim;
  // with LayerContext::loss_in_backward zero, to which the backward adds the loss.
  at::Tensor forward(const WeightView& weights, const at::Tensor& x, const at::Tensor& targets,
                     const LayerContext& context, Kept& kept) const;
  // grad_loss: 0-dim, on the host. The loss is taken with these weights, whatever the forward read. The halves hold the
  // logits' gradient of all rows, from one to the other.
  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad_loss, Kept& kept) const;
  void backward_weights(Kept& kept, const GradientSums& gradients) const;
  at::Tensor backward(const WeightView& weights, const at::Tensor& grad_loss, Kept& kept,
                      const GradientSums& gradients) const;

  double cost() const { return output_.cost(); }
  double kept_bytes(const MicrobatchShape& shape) const;     // of (shape.tokens()) rows
  double passing_bytes(const MicrobatchShape& shape) const;  // see Layer
  double split_bytes(const MicrobatchShape& shape) const;    // see Layer

 private:
  template <typename PieceDone>
  at::Tensor backward_in_pieces(const WeightView& weights, const at::Tensor& grad_loss, Kept& kept, int64_t pieces,
                                PieceDone&& piece_done) const;

  int64_t width_, vocabulary_, rows_at_once_;
  Linear output_;
};

}  // namespace gyre
