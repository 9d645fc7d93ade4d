// Optimizers under delay: the 8x8 experiment whose orderings are known.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>
#include <utility>
#include <vector>

#include "fixture.h"
#include "gyre/optim/settings/muon_settings.h"

namespace gyre {
namespace {

using namespace testing_support;

// f = tr(W'AWB) / 2 with noisy gradients A W B + 0.3 A^1/2 Z B^1/2 taken `delay` updates ago; the mean of f over the
// last 5% of the updates, at the best of some learning rates. A and B have eigenvalues 3 * 10^(-2i/7).
double kronecker_loss(const std::string& kind, const OptimizerConfig& base, int64_t delay, bool aligned) {
  constexpr int kUpdates = 2000;
  at::manual_seed(5);
  at::Tensor eigenvalues = at::empty({8});
  for (int i = 0; i < 8; ++i) eigenvalues[i] = 3 * std::pow(10.0, -2.0 * i / 7);
  const auto side = [&] {
    const at::Tensor q = aligned ? at::eye(8) : std::get<0>(at::linalg_qr(at::randn({8, 8})));
    return std::pair{q.mm(at::diag(eigenvalues)).mm(q.t()), q.mm(at::diag(eigenvalues.sqrt())).mm(q.t())};
  };
  const auto [a, root_a] = side();
  const auto [b, root_b] = side();
  const at::Tensor start = at::randn({8, 8});
  double best = std::numeric_limits<double>::infinity();
  for (const double rate : {1e-3, 3e-3, 1e-2, 3e-2}) {
    at::manual_seed(6);
    auto optimizer = make(kind, matrix("w", 8, 8, true), base);
    at::Tensor w = start.clone();
    std::deque<at::Tensor> past = {w.clone()};
    double tail = 0;
    for (int t = 1; t <= kUpdates; ++t) {
      const at::Tensor noise = root_a.mm(at::randn({8, 8})).mm(root_b) * 0.3;
      UpdateContext context = context_of(t, rate, std::min<int64_t>(t - 1, delay));
      step(*optimizer, w, a.mm(past.front()).mm(b) + noise, context);
      past.push_back(w.clone());
      if (static_cast<int64_t>(past.size()) > delay + 1) past.pop_front();
      if (t > kUpdates * 95 / 100) tail += 0.5 * (w.t().mm(a).mm(w) * b).sum().item<double>();
    }
    best = std::min(best, tail / (kUpdates * 0.05));
  }
  return best;
}

double slowdown(const std::string& kind, const OptimizerConfig& config = {}, bool aligned = false) {
  return kronecker_loss(kind, config, 31, aligned) / kronecker_loss(kind, config, 0, aligned);
}

TEST(Kronecker, RotationBearsDelayAndTheOthersInTheKnownOrder) {
  OptimizerConfig usual;
  usual.weight_decay = 0;
  const auto rotated = [&](const char* source, const char* geometry) {
    OptimizerConfig config = usual;
    rotation(config).source = source;
    rotation(config).geometry = geometry;
    return slowdown("basis-rotation", config);
  };
  const double misaligned = slowdown("adamw", usual), aligned = slowdown("adamw", usual, true);
  const double second_both = rotated("second", "bilateral"), second_one = rotated("second", "unilateral");
  const double first_both = rotated("first", "bilateral");
  OptimizerConfig nesterov = usual, orthogonal = usual;
  nesterov.beta1 = 0.99;
  orthogonal.own = MuonSettings{.matrix_lr_ratio = 1};
  const double lookahead = slowdown("nesterov-async", nesterov), muon = slowdown("muon", orthogonal);
  SCOPED_TRACE(::testing::Message() << "aligned " << aligned << " misaligned " << misaligned << " second/both "
                                    << second_both << " second/one " << second_one << " first/both " << first_both
                                    << " nesterov " << lookahead << " muon " << muon);
  EXPECT_GT(misaligned, 2.5);
  EXPECT_LT(aligned, 1.5);
  EXPECT_LT(second_both, 1.5);
  EXPECT_LT(first_both, 2);
  EXPECT_LT(second_both, second_one);
  EXPECT_LT(first_both, second_one);
  EXPECT_LT(second_one, misaligned);
  EXPECT_LT(lookahead, misaligned);
  EXPECT_LT(muon, misaligned / 1.5);
}

}  // namespace
}  // namespace gyre
