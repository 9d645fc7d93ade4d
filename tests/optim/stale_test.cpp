// The optimizers against stale gradients: each against its formula, and the 8x8 experiment whose orderings are known.
#include "gyre/optim/stale.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <map>

#include "gyre/core/error.h"
#include "gyre/optim/basis_rotation.h"
#include "gyre/optim/settings/stale_settings.h"

namespace gyre {
namespace {

ParameterSpec matrix(int64_t rows, int64_t columns, bool decay = false) {
  ParameterSpec spec;
  spec.name = "w";
  spec.shape = {rows, columns};
  spec.decay = decay;
  spec.rotate = true;
  return spec;
}

UpdateContext context_of(int64_t update, double rate, int64_t delay = 0) {
  UpdateContext context;
  context.update = update;
  context.learning_rate = rate;
  context.delay = delay;
  return context;
}

void step(Optimizer& optimizer, const at::Tensor& w, const at::Tensor& g, const UpdateContext& context) {
  optimizer.step(std::vector<at::Tensor>{w}, std::vector<at::Tensor>{g.clone()}, context);
}

std::unique_ptr<Optimizer> make(const std::string& kind, const ParameterSpec& spec, OptimizerConfig config = {}) {
  config.kind = kind;
  return make_optimizer(config, {spec}, at::kCPU);
}

TEST(DelayDiscount, DividesByThePowerOfTheDelayThatFades) {
  for (const auto& [kind, undiscounted] : std::map<std::string, std::string>{
           {"pipedream-lr", "adamw"}, {"pipemare", "adamw"}, {"basis-rotation", "basis-rotation"}, {"muon", "muon"}}) {
    OptimizerConfig config;
    config.delay_warmup = 100;
    auto slowed = make(kind, matrix(3, 3), config), plain = make(undiscounted, matrix(3, 3));
    at::manual_seed(1);
    at::Tensor a = at::randn({3, 3}), b = a.clone();
    for (int64_t t = 1; t <= 150; ++t) {
      const at::Tensor g = at::randn({3, 3});
      const int64_t delay = t < 5 ? 0 : 7;
      const double p = std::max(0.0, 1 - static_cast<double>(t) / 100);
      step(*slowed, a, g, context_of(t, 1e-2, delay));
      step(*plain, b, g, context_of(t, 1e-2 / std::pow(static_cast<double>(std::max<int64_t>(1, delay)), p)));
      ASSERT_TRUE(a.equal(b)) << kind << ", update " << t;
    }
  }
}

TEST(DelayCompensated, AddsTheCurvatureTerm) {
  OptimizerConfig config;
  config.own.edit<DelayCompensatedSettings>().lambda = 0.5;
  auto compensated = make("delay-compensated", matrix(4, 2), config), plain = make("adamw", matrix(4, 2));
  at::manual_seed(1);
  at::Tensor a = at::randn({4, 2}), b = a.clone();
  std::vector<at::Tensor> history = {a.clone()};  // weights before update t
  for (int64_t t = 1; t <= 40; ++t) {
    const at::Tensor g = at::randn({4, 2});
    const int64_t delay = std::min<int64_t>(t - 1, 3);
    step(*compensated, a, g, context_of(t, 1e-2, delay));
    const at::Tensor then = history[static_cast<size_t>(t - 1 - delay)];
    step(*plain, b, g + 0.5 * g * g * (b - then), context_of(t, 1e-2));
    history.push_back(b.clone());
    ASSERT_TRUE(at::allclose(a, b, 1e-6, 1e-7)) << t;
  }
}

TEST(NesterovAsync, FollowsItsFormula) {
  OptimizerConfig config;
  config.beta1 = 0.99;
  config.weight_decay = 0.1;
  auto optimizer = make("nesterov-async", matrix(5, 3, true), config);
  at::manual_seed(1);
  at::Tensor w = at::randn({5, 3}), x = w.to(at::kDouble);
  at::Tensor m = at::zeros({5, 3}, at::kDouble), v = m.clone();
  double product = 1;
  const auto mu = [](int64_t t) { return 0.99 * (1 - 0.5 * std::pow(0.96, 0.004 * static_cast<double>(t))); };
  for (int64_t t = 1; t <= 50; ++t) {
    const at::Tensor g = at::randn({5, 3});
    const at::Tensor wide = g.to(at::kDouble);
    step(*optimizer, w, g, context_of(t, 1e-2));
    m = 0.99 * m + 0.01 * wide;
    v = 0.999 * v + 0.001 * wide * wide;
    product *= mu(t);
    const at::Tensor direction = ((1 - mu(t)) / (1 - product) * wide + mu(t + 1) / (1 - product * mu(t + 1)) * m) /
                                 ((v / (1 - std::pow(0.999, static_cast<double>(t)))).sqrt() + 1e-8);
    x = x * (1 - 1e-2 * 0.1) - 1e-2 * direction;
  }
  EXPECT_TRUE(at::allclose(w.to(at::kDouble), x, 1e-4, 1e-5));
}

TEST(Muon, StepsAreNearlyOrthogonal) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{12, 12}, {24, 8}, {8, 24}}) {
    OptimizerConfig config;
    config.weight_decay = 0;
    auto optimizer = make("muon", matrix(rows, columns), config);
    at::manual_seed(1);
    at::Tensor w = at::zeros({rows, columns});
    step(*optimizer, w, at::randn({rows, columns}), context_of(1, 1e-3));
    const double scale = 0.02 * std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(columns)));
    const at::Tensor singular = std::get<1>(at::linalg_svd(w / scale, false));
    EXPECT_GT(singular.min().item<double>(), 0.3);  // five steps of these coefficients end between 0.7 and 1.2 or so
    EXPECT_LT(singular.max().item<double>(), 1.3);
  }
}

TEST(ErrorFeedback, AddsTheChangeOfTheWholeStep) {
  OptimizerConfig config;
  config.beta1 = config.beta2 = 0;  // the direction is the gradient's sign
  config.weight_decay = 0.1;
  auto optimizer = make("error-feedback", matrix(1, 1, true), config);
  at::Tensor w = at::ones({1, 1});
  double x = 1, last = 0;
  const double rates[] = {0.5, 0.25, 0.5, 0.125, 0.5}, signs[] = {1, -1, -1, 1, -1};
  const int64_t delays[] = {1, 1, 2, 0, 1};
  for (int t = 0; t < 5; ++t) {
    step(*optimizer, w, at::full({1, 1}, signs[t]), context_of(t + 1, rates[t], delays[t]));
    const double u = rates[t] * signs[t] + rates[t] * 0.1 * x;
    x -= t == 0 || delays[t] == 0 ? u : u + (u - last);
    last = u;
    EXPECT_NEAR(w.item<double>(), x, 1e-6) << "update " << t + 1;
  }
}

TEST(ErrorFeedback, WithoutDelayIsAdamW) {
  auto corrected = make("error-feedback", matrix(5, 3, true)), plain = make("adamw", matrix(5, 3, true));
  at::manual_seed(1);
  at::Tensor a = at::randn({5, 3}), b = a.clone();
  for (int64_t t = 1; t <= 30; ++t) {
    const at::Tensor g = at::randn({5, 3});
    step(*corrected, a, g, context_of(t, 1e-2));
    step(*plain, b, g, context_of(t, 1e-2));
    ASSERT_TRUE(a.equal(b)) << "update " << t;
  }
}

TEST(Every, SavedStateContinuesToTheBit) {
  for (const std::string& kind : optimizer_kinds().names()) {
    for (const char* source : {"second", "first"}) {
      OptimizerConfig config;
      if (kind == "basis-rotation") {
        const char* geometry = source == std::string("first") ? "unilateral" : "bilateral";
        config.own = BasisRotationSettings{.interval = 4, .source = source, .geometry = geometry};
      }
      config.delay_warmup = 30;
      auto whole = make(kind, matrix(6, 4, true), config);
      at::manual_seed(1);
      std::vector<at::Tensor> gradients;
      for (int t = 0; t < 20; ++t) gradients.push_back(at::randn({6, 4}));
      at::Tensor w = at::ones({6, 4});
      const auto run = [&](Optimizer& optimizer, at::Tensor& weight, int begin, int end) {
        // After a restart there is no delay: the pipeline was empty.
        for (int t = begin; t < end; ++t) step(optimizer, weight, gradients[t], context_of(t + 1, 1e-2, 0));
      };
      run(*whole, w, 0, 11);
      NamedTensors saved;
      for (const auto& [name, tensor] : whole->state()) saved[name] = tensor.clone();
      at::Tensor resumed_w = w.clone();
      auto resumed = make(kind, matrix(6, 4, true), config);
      resumed->load_state(saved);
      run(*whole, w, 11, 20);
      run(*resumed, resumed_w, 11, 20);
      EXPECT_TRUE(w.equal(resumed_w)) << kind;
    }
  }
}

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
    auto optimizer = make(kind, matrix(8, 8), base);
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
    config.own.edit<BasisRotationSettings>().source = source;
    config.own.edit<BasisRotationSettings>().geometry = geometry;
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

TEST(Refresh, StageAwareSpendsTheSameBudgetWhereDelaysAreLong) {
  // Counted by how often the basis changes over 700 updates at 8 stages.
  std::vector<int> refreshes;
  for (int stage = 0; stage < 8; ++stage) {
    OptimizerConfig config;
    config.own.edit<BasisRotationSettings>().refresh = "stage-aware";
    auto optimizer = make("basis-rotation", matrix(5, 5), config);
    at::manual_seed(1);
    at::Tensor w = at::zeros({5, 5}), basis = at::zeros({5, 5});
    int changes = 0;
    for (int64_t t = 1; t <= 700; ++t) {
      UpdateContext context = context_of(t, 1e-3);
      context.mean_delay = {7.0 - stage, 3.5};
      step(*optimizer, w, at::randn({5, 5}), context);
      const at::Tensor now = optimizer->state().at("w/left_basis");
      changes += !now.equal(basis);
      basis = now.clone();
    }
    refreshes.push_back(changes);
  }
  for (int stage = 1; stage < 8; ++stage) EXPECT_LE(refreshes[stage], refreshes[stage - 1]);
  int total = 0;
  for (int count : refreshes) total += count;
  EXPECT_NEAR(total, 8 * 70, 0.15 * 8 * 70);
}

// The updates at which the left basis changed, of 400, after the first basis.
std::vector<int64_t> refreshes(MeanDelays mean_delay, int64_t delay) {
  OptimizerConfig config;
  config.own.edit<BasisRotationSettings>().refresh = "stage-aware";
  auto optimizer = make("basis-rotation", matrix(5, 5), config);
  at::manual_seed(1);
  at::Tensor w = at::zeros({5, 5}), basis = at::zeros({5, 5});
  std::vector<int64_t> updates;
  for (int64_t t = 1; t <= 400; ++t) {
    UpdateContext context = context_of(t, 1e-3, std::min(t - 1, delay));
    context.mean_delay = mean_delay;
    step(*optimizer, w, at::randn({5, 5}), context);
    const at::Tensor now = optimizer->state().at("w/left_basis");
    if (!now.equal(basis) && t > 10) updates.push_back(t);
    basis = now.clone();
  }
  return updates;
}

TEST(Refresh, StageAwareTakesTheDelaysThereAre) {
  const auto every = [](int64_t interval) {
    std::vector<int64_t> updates;
    for (int64_t t = interval; t <= 400; t += interval) {
      if (t > 10) updates.push_back(t);
    }
    return updates;
  };
  EXPECT_EQ(refreshes({0, 0}, 0), every(10)) << "no delay anywhere";
  EXPECT_EQ(refreshes({1, 1}, 1), every(10)) << "the same everywhere, as with PipeDream-2BW";
  EXPECT_EQ(refreshes({0.25, 0.25}, 1), every(10));
  EXPECT_EQ(refreshes({0.5, 0.25}, 1), every(5));
  EXPECT_EQ(refreshes({0, 0.25}, 0), every(20));
  EXPECT_EQ(refreshes({0, 3.5}, 0), every(70)) << "PipeDream's last stage of 8";
  EXPECT_EQ(refreshes({7, 3.5}, 7), every(5)) << "and its first";
}

TEST(Refresh, AdaptiveComesWithDriftAlone) {
  OptimizerConfig config;
  config.own.edit<BasisRotationSettings>().refresh = "adaptive";
  config.own.edit<BasisRotationSettings>().drift = 0.3;
  auto optimizer = make("basis-rotation", matrix(6, 6), config);
  at::manual_seed(1);
  at::Tensor w = at::zeros({6, 6}), basis;
  int steady = 0, turning = 0;
  const at::Tensor scales = at::tensor({9.0f, 7.0f, 5.0f, 3.0f, 2.0f, 1.0f});
  const at::Tensor turn = std::get<0>(at::linalg_qr(at::randn({6, 6})));
  for (int64_t t = 1; t <= 3000; ++t) {
    at::Tensor g = at::diag(scales).mm(at::randn({6, 6})).mm(at::diag(scales));
    if (t > 1500) g = turn.mm(g);
    step(*optimizer, w, g, context_of(t, 1e-4));
    const at::Tensor now = optimizer->state().at("w/left_basis");
    if (basis.defined() && !now.equal(basis) && t > 300) ++(t <= 1500 ? steady : turning);
    basis = now.clone();
  }
  EXPECT_LT(steady, 40);  // of 120 occasions
  EXPECT_GT(turning, steady);
}

TEST(Geometry, LongSidesStayAsTheyAre) {
  OptimizerConfig config;
  config.own.edit<BasisRotationSettings>().max_dimension = 8;
  config.own.edit<BasisRotationSettings>().interval = 2;
  auto optimizer = make("basis-rotation", matrix(6, 20), config);
  at::manual_seed(1);
  at::Tensor w = at::zeros({6, 20});
  for (int64_t t = 1; t <= 6; ++t) step(*optimizer, w, at::randn({6, 20}), context_of(t, 1e-3));
  EXPECT_EQ(optimizer->state().count("w/left_basis"), 1u);
  EXPECT_EQ(optimizer->state().count("w/right_basis"), 0u);
  // Both sides too long: AdamW to the bit.
  config.own.edit<BasisRotationSettings>().max_dimension = 4;
  auto unrotated = make("basis-rotation", matrix(6, 20), config), plain = make("adamw", matrix(6, 20));
  at::Tensor a = at::zeros({6, 20}), b = at::zeros({6, 20});
  for (int64_t t = 1; t <= 20; ++t) {
    const at::Tensor g = at::randn({6, 20});
    step(*unrotated, a, g, context_of(t, 1e-3));
    step(*plain, b, g, context_of(t, 1e-3));
  }
  EXPECT_TRUE(a.equal(b));
}

}  // namespace
}  // namespace gyre
