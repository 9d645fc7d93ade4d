// A residual connection: a branch with its norm and dropout, added to the residual stream.
//   pre-norm (GPT-2):                         y = x + dropout(branch(norm(x)))
//   post-norm (BERT, Vaswani et al., 2017):   y = norm(x + dropout(branch(x)))
// With pre-norm norm(x) is not saved for the backward: the norm's backward, which reads x anyway, recomputes it.
#pragma once

#include <concepts>
#include <string>
#include <tuple>
#include <utility>

#include "gyre/model/sublayers/dropout.h"
#include "gyre/model/sublayers/norm.h"

namespace gyre {

struct ResidualOptions {
  std::string norm_name, branch_name;
  NormOptions norm;
  bool post_norm = false;
  DropoutOptions dropout;
};

// A branch whose record holds the branch's input in one tensor, T::input(kept), so that the residual can release and
// restore it.
template <typename T>
concept ResidualBranch = Sublayer<T> && requires(typename T::Kept& kept) {
  { T::input(kept) } -> std::same_as<at::Tensor&>;
};

template <ResidualBranch Branch>
class Residual {
 public:
  struct Kept {
    Norm::Kept norm;
    typename Branch::Kept branch;
    Dropout::Kept dropout;
    auto members() const { return std::tie(norm, branch, dropout); }
  };

  // Declares the norm's parameters, then the branch's.
  Residual(ParameterList& parameters, const ResidualOptions& options, const typename Branch::Options& branch)
      : post_norm_(options.post_norm),
        width_(static_cast<double>(options.norm.width)),
        norm_(parameters, options.norm_name, norm_options(options)),
        branch_(parameters, options.branch_name, branch),
        dropout_(options.dropout) {}

  at::Tensor forward(const WeightView& weights, const at::Tensor& x, const LayerContext& context, Kept& kept) const {
    const at::Tensor input = post_norm_ ? x : norm_.forward(weights, x, context, kept.norm);
    at::Tensor y = branch_.forward(weights, input, context, kept.branch);
    if (!post_norm_) Branch::input(kept.branch).reset();
    dropout_.apply(y, context, kept.dropout);
    y.add_(x);
    return post_norm_ ? norm_.forward(weights, y, context, kept.norm) : y;
  }

  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad, Kept& kept) const {
    const at::Tensor grad_sum = post_norm_ ? norm_.backward_input(weights, grad, kept.norm) : grad;
    const at::Tensor grad_branch = dropout_.backward_input(grad_sum, kept.dropout);
    at::Tensor grad_x = branch_.backward_input(weights, grad_branch, kept.branch);
    if (!post_norm_) {
      grad_x = norm_.backward_input(weights, grad_x, kept.norm);
      Branch::input(kept.branch) = std::exchange(kept.norm.output, {});
    }
    return grad_x.add_(grad_sum);
  }

  void backward_weights(Kept& kept, const GradientSums& gradients) const {
    norm_.backward_weights(kept.norm, gradients);
    branch_.backward_weights(kept.branch, gradients);
  }

  // See Layer.
  bool decodes() const {
    if constexpr (requires { branch_.decodes(); }) return branch_.decodes();
    return true;
  }
  double cost() const { return branch_.cost(); }
  double kept_bytes(const MicrobatchShape& shape) const {
    // The branch counts its input, which a pre-norm residual does not save.
    const double input = post_norm_ ? 0 : shape.tokens() * width_ * shape.element_bytes;
    return norm_.kept_bytes(shape) + branch_.kept_bytes(shape) - input + dropout_.kept_bytes(shape);
  }
  double passing_bytes(const MicrobatchShape& shape) const {
    return branch_.passing_bytes(shape) + dropout_.passing_bytes(shape);
  }
  double weights_passing_bytes(const MicrobatchShape& shape) const {
    return branch_.weights_passing_bytes(shape) + dropout_.passing_bytes(shape);
  }
  double split_bytes(const MicrobatchShape& shape) const { return branch_.split_bytes(shape); }

 private:
  static NormOptions norm_options(const ResidualOptions& options) {
    NormOptions norm = options.norm;
    norm.recomputes_output = !options.post_norm;
    return norm;
  }

  bool post_norm_;
  double width_;
  Norm norm_;
  Branch branch_;
  Dropout dropout_;
};

}  // namespace gyre
