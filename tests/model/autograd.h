// Compares a model's loss and gradients with those that autograd finds for the same model written with ATen's
// operations.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "gyre/model/stage.h"

namespace gyre::testing_support {

// reference: computes the loss from the weights, in the order of the stage's parameters; a tied weight is the first.
// Runs the backward in one call, adding to zeros, and in two halves, into tensors that hold no sums yet; each with the
// loss from the forward, and from the backward.
inline void expect_equal_to_autograd(const Stage& stage, const at::Tensor& inputs, const at::Tensor& targets,
                                     at::ScalarType type,
                                     const std::function<at::Tensor(const std::vector<at::Tensor>&)>& reference) {
  std::vector<at::Tensor> weights, leaves, gradients;
  for (const ParameterSpec& spec : stage.parameters()) {
    // Larger than the usual initial weights, so that every non-linearity matters.
    weights.push_back(
        initial_value(spec, 1).mul(spec.shape.size() == 2 ? 15.0 : 1.0).add(at::randn(spec.shape).mul(0.1)).to(type));
    leaves.push_back(weights.back().clone().requires_grad_());
    gradients.push_back(at::zeros(spec.shape, type));
  }
  const at::Tensor tied_gradient = at::zeros_like(gradients[0]);
  std::vector<at::Tensor> sums = stage.with_tied(gradients, tied_gradient);
  const at::Tensor expected = reference(leaves);
  expected.backward();

  const at::NoGradGuard no_grad;
  LayerContext context;
  context.targets = targets;
  weights = stage.all_of(weights);
  for (const auto& [split, loss_in_backward] : {std::pair{false, false}, {false, true}, {true, false}, {true, true}}) {
    context.loss_in_backward = loss_in_backward;
    for (at::Tensor& gradient : sums) gradient.fill_(split ? std::numeric_limits<double>::quiet_NaN() : 0);
    StageSaved saved;
    const at::Tensor loss = stage.forward(weights, inputs, context, saved);
    if (split) {
      stage.backward_input(weights, at::scalar_tensor(1.0), saved);
      std::vector<char> holds(sums.size());
      stage.backward_weights(saved, {sums, holds});
    } else {
      stage.backward(weights, at::scalar_tensor(1.0), saved, sums);
    }
    if (stage.tied()) gradients[0].add_(tied_gradient);
    const double tolerance = type == at::kDouble ? 1e-9 : 5e-5;
    EXPECT_NEAR(loss.item<double>(), expected.item<double>(), tolerance);
    for (size_t i = 0; i < leaves.size(); ++i) {
      const double error = (gradients[i] - leaves[i].grad()).abs().max().item<double>();
      const double size = leaves[i].grad().abs().max().item<double>();
      EXPECT_LT(error, tolerance * std::max(1.0, size)) << stage.parameters()[i].name;
      EXPECT_GT(size, 0) << stage.parameters()[i].name;
    }
  }
}

}  // namespace gyre::testing_support
