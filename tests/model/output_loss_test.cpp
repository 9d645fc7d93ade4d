// Tests the output matrix with its loss: in pieces, in halves and with the loss left to the backward, the results equal
// those of ATen's operations and autograd, and it holds as few logits as it promises.
#include "gyre/model/sublayers/output_loss.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "gyre/kernels/linear.h"
#include "gyre/tensors/host_memory.h"

namespace gyre {
namespace {

constexpr int64_t kWidth = 12, kVocabulary = 37;

LinearOptions matrix(int64_t vocabulary, int64_t width) {
  LinearOptions options;
  options.out = vocabulary;
  options.in = width;
  return options;
}

struct Problem {
  ParameterList parameters;
  OutputLoss output;
  std::vector<at::Tensor> weights;  // matrix and bias
  at::Tensor x, targets;            // (2, rows / 2, width), (rows)

  Problem(int64_t rows, int64_t rows_at_once)
      : output(parameters, "output", matrix(kVocabulary, kWidth), rows_at_once),
        weights({at::randn({kVocabulary, kWidth}, at::kDouble), at::randn({kVocabulary}, at::kDouble)}),
        x(at::randn({2, rows / 2, kWidth}, at::kDouble)),
        targets(at::randint(kVocabulary, {rows}, at::kLong)) {}
};

enum class Loss { AtOnce, InBackward };
enum class Backward { Whole, Halves };

void expect_equal_to_autograd(Problem& problem, Loss loss_comes, Backward backward) {
  std::vector<at::Tensor> leaves{problem.x.clone().requires_grad_(), problem.weights[0].clone().requires_grad_(),
                                 problem.weights[1].clone().requires_grad_()};
  const at::Tensor logits = at::linear(leaves[0].view({-1, kWidth}), leaves[1], leaves[2]);
  const at::Tensor expected = at::cross_entropy_loss(logits, problem.targets);
  (expected * 0.3).backward();

  const c10::NoGradGuard no_grad;
  LayerContext context;
  context.loss_in_backward = loss_comes == Loss::InBackward;
  std::vector<at::Tensor> gradients;  // that hold no sums yet
  for (const at::Tensor& weight : problem.weights) {
    gradients.push_back(at::full_like(weight, std::numeric_limits<double>::quiet_NaN()));
  }
  std::vector<char> holds(gradients.size());
  const GradientSums sums(gradients, holds);
  OutputLoss::Kept kept;
  const at::Tensor loss = problem.output.forward(problem.weights, problem.x, problem.targets, context, kept);
  EXPECT_EQ(loss.item<double>() == 0, loss_comes == Loss::InBackward);
  const at::Tensor weight = at::scalar_tensor(0.3, at::kDouble);
  at::Tensor grad;
  if (backward == Backward::Halves) {
    grad = problem.output.backward_input(problem.weights, weight, kept);
    problem.output.backward_weights(kept, sums);
  } else {
    grad = problem.output.backward(problem.weights, weight, kept, sums);
  }
  EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-12);
  EXPECT_TRUE(at::allclose(grad, leaves[0].grad(), 1e-10, 1e-12));
  EXPECT_TRUE(at::allclose(gradients[0], leaves[1].grad(), 1e-10, 1e-12));
  EXPECT_TRUE(at::allclose(gradients[1], leaves[2].grad(), 1e-10, 1e-12));
}

TEST(OutputLoss, EqualsAutogradInAnyPieces) {
  at::manual_seed(1);
  for (const int64_t rows : {2, 10, 64}) {
    for (const int64_t rows_at_once : {1, 3, 7, 64, 1000}) {
      Problem problem(rows, rows_at_once);
      for (const Loss loss : {Loss::AtOnce, Loss::InBackward}) {
        for (const Backward backward : {Backward::Whole, Backward::Halves}) {
          expect_equal_to_autograd(problem, loss, backward);
        }
      }
    }
  }
}

TEST(OutputLoss, ALossToEvaluateIsTheSameInAnyPieces) {
  at::manual_seed(2);
  Problem problem(64, 5);
  const at::Tensor expected = at::cross_entropy_loss(
      at::linear(problem.x.view({-1, kWidth}), problem.weights[0], problem.weights[1]), problem.targets);
  LayerContext context;
  context.training = false;
  OutputLoss::Kept kept;
  const at::Tensor loss = problem.output.forward(problem.weights, problem.x, problem.targets, context, kept);
  EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-12);
  EXPECT_FALSE(kept.input.defined());
}

// The loss is computed with the weights of which the gradient is taken.
TEST(OutputLoss, TheBackwardsWeightsDecide) {
  at::manual_seed(3);
  Problem problem(8, 3);
  LayerContext context;
  context.loss_in_backward = true;
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& weight : problem.weights) gradients.push_back(at::zeros_like(weight));
  OutputLoss::Kept kept;
  const at::Tensor loss = problem.output.forward(problem.weights, problem.x, problem.targets, context, kept);
  const std::vector<at::Tensor> newer{problem.weights[0] * 2, problem.weights[1] - 1};
  const at::Tensor expected =
      at::cross_entropy_loss(at::linear(problem.x.view({-1, kWidth}), newer[0], newer[1]), problem.targets);
  problem.output.backward(newer, at::scalar_tensor(1.0), kept, gradients);
  EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-12);
}

// 32 MB of logits in pieces of 2 MB: none between forward and backward, and in each few at a time.
TEST(OutputLoss, HoldsTheLogitsOfAPieceAlone) {
  constexpr int64_t kRows = 2048, kPiece = 128, kWide = 4096, kNarrow = 16;
  constexpr size_t kLogits = kRows * kWide * 4;
  HostMemory memory;
  ParameterList parameters;
  LinearOptions options = matrix(kWide, kNarrow);
  options.bias = false;
  const OutputLoss output(parameters, "output", options, kPiece);
  const std::vector<at::Tensor> weights{at::randn({kWide, kNarrow})};
  std::vector<at::Tensor> gradients{at::zeros({kWide, kNarrow})};
  const at::Tensor x = at::randn({kRows, kNarrow}), targets = at::randint(kWide, {kRows}, at::kLong);
  for (const bool loss_in_backward : {false, true}) {
    LayerContext context;
    context.loss_in_backward = loss_in_backward;
    OutputLoss::Kept kept;
    memory.forget_peak();
    const size_t before = memory.bytes().live;
    output.forward(weights, x, targets, context, kept);
    EXPECT_LT(memory.bytes().peak - before, loss_in_backward ? size_t{1} : kLogits / 8);
    EXPECT_EQ(memory.bytes().live, before);
    output.backward(weights, at::scalar_tensor(1.0), kept, gradients);
    EXPECT_LT(memory.bytes().peak - before, kLogits / 8);
  }
}

TEST(OutputLoss, SaysWhatItHolds) {
  heed_limit_of_instructions();  // as the program does
  ParameterList parameters;
  const OutputLoss output(parameters, "output", matrix(50257, 768));
  const MicrobatchShape small{1, 1024, 2}, large{128, 1024, 2};
  EXPECT_EQ(output.split_bytes(small), 1024.0 * 50257 * 2);
  EXPECT_EQ(output.split_bytes(large), 128 * output.split_bytes(small));
  EXPECT_GT(output.passing_bytes(small), output.split_bytes(small));
  EXPECT_LT(output.passing_bytes(large), output.split_bytes(large) / 8);
  EXPECT_LT(output.kept_bytes(large), output.split_bytes(large) / 32);
}

}  // namespace
}  // namespace gyre
