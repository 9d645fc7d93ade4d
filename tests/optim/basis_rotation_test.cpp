// Basis rotation against AdamW in rotated coordinates; the experiments with known results.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <iterator>
#include <thread>

#include "fixture.h"
#include "gyre/core/error.h"
#include "gyre/optim/parameter/basis_rotation.h"
#include "gyre/optim/state_bytes.h"

namespace gyre {
namespace {

using namespace testing_support;

// State of a basis rotation whose bases are u and v; the covariances do not matter while no refresh comes.
NamedTensors frozen_state(const at::Tensor& u, const at::Tensor& v) {
  const int64_t m = u.size(0), n = v.size(0);
  return {{"w/exp_avg", at::zeros({m, n})},          {"w/exp_avg_sq", at::zeros({m, n})},
          {"w/left_covariance", at::zeros({m, m})},  {"w/left_basis", u},
          {"w/right_covariance", at::zeros({n, n})}, {"w/right_basis", v}};
}

TEST(BasisRotation, FrozenBasesEqualAdamWInRotatedCoordinates) {
  at::manual_seed(2);
  for (const bool identity : {true, false}) {
    const int64_t m = 12, n = 7;
    const at::Tensor u = identity ? at::eye(m) : random_orthogonal(m), v = identity ? at::eye(n) : random_orthogonal(n);
    OptimizerConfig config = config_of("basis-rotation");
    rotation(config).long_sides = "whole";
    rotation(config).interval = 1000;
    auto rotated = make_optimizer(config, {matrix("w", m, n, true)});
    rotated->load_state(frozen_state(u, v));
    auto adamw = make_optimizer(config_of("adamw"), {matrix("w", m, n, true)});
    at::Tensor w = at::randn({m, n}), turned = u.t().mm(w).mm(v);
    for (int64_t t = 1; t <= 50; ++t) {
      const at::Tensor g = at::randn({m, n});
      rotated->step(std::vector<at::Tensor>{w}, std::vector<at::Tensor>{g.clone()}, context_of(t, 1e-2));
      adamw->step(std::vector<at::Tensor>{turned}, std::vector<at::Tensor>{u.t().mm(g).mm(v)}, context_of(t, 1e-2));
    }
    EXPECT_LT((w - u.mm(turned).mm(v.t())).abs().max().item<double>(), identity ? 1e-6 : 5e-5);
  }
}

TEST(BasisRotation, BeforeTheFirstRefreshIsAdamW) {
  at::manual_seed(3);
  for (const auto& [rows, columns] : std::map<int64_t, int64_t>{{8, 4}, {3, 7}, {4, 4}}) {
    auto rotated = make_optimizer(config_of("basis-rotation"), {matrix("w", rows, columns, true)});
    auto adamw = make_optimizer(config_of("adamw"), {matrix("w", rows, columns, true)});
    at::Tensor a = at::randn({rows, columns}), b = a.clone();
    for (int64_t t = 1; t <= 10; ++t) {
      if (t == 10) {
        EXPECT_TRUE(a.equal(b));
      }
      const at::Tensor g = at::randn({rows, columns});
      rotated->step(std::vector<at::Tensor>{a}, std::vector<at::Tensor>{g.clone()}, context_of(t, 1e-2));
      adamw->step(std::vector<at::Tensor>{b}, std::vector<at::Tensor>{g.clone()}, context_of(t, 1e-2));
    }
    EXPECT_FALSE(a.equal(b));  // the tenth update refreshes
  }
}

TEST(BasisRotation, ItsBasesAreFoundInItsState) {
  at::manual_seed(4);
  const auto optimizer = make_optimizer(config_of("basis-rotation"), {matrix("w", 6, 4, true)});
  const at::Tensor w = at::randn({6, 4});
  for (int64_t t = 1; t <= 10; ++t) {
    EXPECT_FALSE(saved_bases(optimizer->state(), "w").left.defined()) << "none before the first refresh";
    optimizer->step(std::vector<at::Tensor>{w}, std::vector<at::Tensor>{at::randn({6, 4})}, context_of(t, 1e-2));
  }
  const SavedBases bases = saved_bases(optimizer->state(), "w");
  EXPECT_LT((bases.left.t().mm(bases.left) - at::eye(6)).abs().max().item<double>(), 1e-5);
  EXPECT_LT((bases.right.t().mm(bases.right) - at::eye(4)).abs().max().item<double>(), 1e-5);
  EXPECT_FALSE(saved_bases(optimizer->state(), "another").left.defined());
}

TEST(BasisRotation, LongSidesAreThinUnlessAskedFor) {
  at::manual_seed(27);
  for (const auto& [rows, columns] : std::map<int64_t, int64_t>{{8, 4}, {3, 8}, {5, 5}, {7, 4}}) {
    const int64_t least = std::min(rows, columns), longest = std::max(rows, columns);
    const int64_t held = longest >= 2 * least ? least : longest;  // of the long side
    OptimizerConfig config = config_of("basis-rotation");
    auto thin = make_optimizer(config, {matrix("w", rows, columns, true)});
    rotation(config).long_sides = "whole";
    auto whole = make_optimizer(config, {matrix("w", rows, columns, true)});
    if (held < longest) rotation(config).max_dimension = rotation(config).sketch = least;
    auto sketched = make_optimizer(config, {matrix("w", rows, columns, true)});
    at::Tensor a = at::randn({rows, columns}), b = a.clone();
    for (int64_t t = 1; t <= 25; ++t) {
      const at::Tensor g = at::randn({rows, columns});
      thin->step(std::vector<at::Tensor>{a}, std::vector<at::Tensor>{g.clone()}, context_of(t, 1e-2));
      sketched->step(std::vector<at::Tensor>{b}, std::vector<at::Tensor>{g.clone()}, context_of(t, 1e-2));
    }
    EXPECT_TRUE(a.equal(b)) << rows << " x " << columns;
    EXPECT_EQ(thin->state().at("w/left_basis").sizes(), (at::IntArrayRef{rows, rows > least ? held : rows}));
    EXPECT_EQ(thin->state().at("w/right_basis").sizes(), (at::IntArrayRef{columns, columns > least ? held : columns}));
    EXPECT_EQ(whole->state().at("w/left_basis").sizes(), (at::IntArrayRef{rows, rows}));
    EXPECT_EQ(whole->state().at("w/right_basis").sizes(), (at::IntArrayRef{columns, columns}));
  }
}

TEST(BasisRotation, SignsAndOrderOfTheBasisDoNotMatter) {
  at::manual_seed(4);
  const int64_t m = 9, n = 5;
  const at::Tensor u = random_orthogonal(m), v = random_orthogonal(n);
  const at::Tensor flips = at::where(at::rand({m}) < 0.5, at::full({}, -1.0f), at::ones({}));
  const at::Tensor order = at::randperm(m);
  OptimizerConfig config = config_of("basis-rotation");
  rotation(config).long_sides = "whole";
  rotation(config).interval = 1000;
  auto a = make_optimizer(config, {matrix("w", m, n, true)}), b = make_optimizer(config, {matrix("w", m, n, true)});
  a->load_state(frozen_state(u, v));
  b->load_state(frozen_state((u * flips).index_select(1, order), v));
  at::Tensor wa = at::randn({m, n}), wb = wa.clone();
  for (int64_t t = 1; t <= 30; ++t) {
    const at::Tensor g = at::randn({m, n});
    a->step(std::vector<at::Tensor>{wa}, std::vector<at::Tensor>{g.clone()}, context_of(t, 1e-2));
    b->step(std::vector<at::Tensor>{wb}, std::vector<at::Tensor>{g.clone()}, context_of(t, 1e-2));
  }
  EXPECT_LT((wa - wb).abs().max().item<double>(), 1e-5);
}

// Of equal and of different sizes, as heads that share keys and values have them; Muon too.
TEST(BasisRotation, RowBlocksAreSeparateMatrices) {
  at::manual_seed(5);
  for (const char* kind : {"basis-rotation", "muon"}) {
    for (const std::vector<int64_t>& rows : {std::vector<int64_t>{4, 4, 4}, {8, 1, 3}}) {
      auto fused = make_optimizer(config_of(kind), {matrix("w", 12, 5, true, rows)});
      std::vector<ParameterSpec> specs;
      for (const int64_t count : rows) specs.push_back(matrix(std::string(1, "qkv"[specs.size()]), count, 5, true));
      auto separate = make_optimizer(config_of(kind), specs);
      at::Tensor w = at::randn({12, 5});
      std::vector<at::Tensor> parts;
      for (const auto& part : w.split_with_sizes(rows)) parts.push_back(part.clone());
      for (int64_t t = 1; t <= 35; ++t) {
        const at::Tensor g = at::randn({12, 5});
        std::vector<at::Tensor> g_parts;
        for (const auto& part : g.split_with_sizes(rows)) g_parts.push_back(part.clone());
        fused->step(std::vector<at::Tensor>{w}, std::vector<at::Tensor>{g.clone()}, context_of(t, 1e-2));
        separate->step(parts, g_parts, context_of(t, 1e-2));
      }
      EXPECT_TRUE(w.equal(at::cat(parts))) << kind;
      EXPECT_DOUBLE_EQ(optimizer_state_bytes(config_of(kind), {matrix("w", 12, 5, true, rows)}),
                       optimizer_state_bytes(config_of(kind), specs));
    }
  }
}

TEST(BasisRotation, SavedStateContinuesToTheBitAtAnyPhase) {
  at::set_num_threads(
      1);  // the same bits are promised for the same number of threads, and OpenBLAS begins with its own
  at::manual_seed(6);
  std::vector<at::Tensor> gradients;
  for (int t = 0; t < 45; ++t) gradients.push_back(at::randn({8, 6}));
  const at::Tensor start = at::randn({8, 6});
  const OptimizerConfig plain = config_of("basis-rotation");
  std::map<std::string, OptimizerConfig> configs;
  for (const char* name :
       {"plain", "bf16", "first", "sketch", "sketch of the momentum", "lag", "ahead", "all at once"}) {
    configs[name] = plain;
  }
  for (auto* type : {&rotation(configs["bf16"]).products, &rotation(configs["bf16"]).covariance_products,
                     &rotation(configs["bf16"]).iteration_products}) {
    *type = "bf16";
  }
  rotation(configs["first"]).source = rotation(configs["sketch of the momentum"]).source = "first";
  for (const char* name : {"sketch", "sketch of the momentum", "all at once"}) {
    rotation(configs[name]).max_dimension = 6;  // of (8, 6): the left side
    rotation(configs[name]).sketch = 3;
  }
  rotation(configs["lag"]).refresh_lag = rotation(configs["all at once"]).refresh_lag = 4;
  rotation(configs["ahead"]).look_ahead = rotation(configs["all at once"]).look_ahead = 0.7;
  rotation(configs["all at once"]).covariance_every = 3;
  for (const auto& [name, config] : configs) {
    const auto run = [&](Optimizer& optimizer, at::Tensor& w, int64_t from, int64_t to) {
      for (int64_t t = from; t <= to; ++t) {
        UpdateContext context = context_of(t, 1e-2);
        context.delay = 3;
        optimizer.step(std::vector<at::Tensor>{w}, std::vector<at::Tensor>{gradients[t - 1].clone()}, context);
      }
    };
    auto whole = make_optimizer(config, {matrix("w", 8, 6, true)});
    at::Tensor expected = start.clone();
    run(*whole, expected, 1, 45);
    for (int64_t stop = 1; stop < 45; stop += 4) {
      auto before = make_optimizer(config, {matrix("w", 8, 6, true)}),
           after = make_optimizer(config, {matrix("w", 8, 6, true)});
      at::Tensor w = start.clone();
      run(*before, w, 1, stop);
      after->load_state(before->state());
      run(*after, w, stop + 1, 45);
      EXPECT_TRUE(w.equal(expected)) << "stopped after " << stop << ", " << name;
    }
  }
}

// Two optimizers get the same gradients, one of them moves its weights ahead.
TEST(BasisRotation, LooksAheadAlongTheDirectionsOfLeastCurvature) {
  at::manual_seed(26);
  for (const double share : {1.0, 0.5, 0.0}) {
    OptimizerConfig config = config_of("basis-rotation");
    rotation(config).long_sides = "whole";
    config.weight_decay = 0;
    auto plain = make_optimizer(config, {matrix("w", 8, 6, true)});
    rotation(config).look_ahead = share;
    auto ahead = make_optimizer(config, {matrix("w", 8, 6, true)});
    at::Tensor w = at::randn({8, 6}), moved = w.clone();
    for (int64_t t = 1; t <= 35; ++t) {
      const at::Tensor before = w.clone(), g = at::randn({8, 6});
      UpdateContext context = context_of(t, 1e-2);
      context.delay = 3;
      plain->step(std::vector<at::Tensor>{w}, std::vector<at::Tensor>{g.clone()}, context);
      ahead->step(std::vector<at::Tensor>{moved}, std::vector<at::Tensor>{g.clone()}, context);
      if (t < 10) {  // there are no bases yet
        EXPECT_TRUE(moved.equal(w));
        continue;
      }
      const at::Tensor expected = (w - before) * 3;
      const NamedTensors state = plain->state();
      const auto turned = [&](const at::Tensor& x) {
        return state.at("w/left_basis").t().mm(x).mm(state.at("w/right_basis"));
      };
      at::Tensor in_bases = turned(expected);
      in_bases.narrow(0, 0, std::lround((1 - share) * 8)).zero_();
      in_bases.narrow(1, 0, std::lround((1 - share) * 6)).zero_();
      EXPECT_LT((turned(moved - w) - in_bases).abs().max().item<double>(), 1e-5) << share << ", update " << t;
    }
  }
}

// An exact basis of a gradient whose covariances have eigenvalues over `span`, refreshed once with what that gradient
// says: how many of the columns turned away. They may change places: at 1e6 the rounding of a gradient to bf16 moves
// eigenvalues that are 5% apart past each other.
int64_t columns_lost(const OptimizerConfig& config, double span) {
  at::manual_seed(17);
  constexpr int64_t kSize = 256;
  const at::Tensor u = random_orthogonal(kSize), v = random_orthogonal(kSize);
  const at::Tensor singular = at::logspace(0, -std::log10(span) / 2, kSize, 10, at::kDouble);
  const at::Tensor g = (u.to(at::kDouble) * singular).mm(v.to(at::kDouble).t()).to(at::kFloat);
  auto optimizer = make_optimizer(config, {matrix("w", kSize, kSize, true)});
  optimizer->load_state(frozen_state(u, v));
  optimizer->step(std::vector<at::Tensor>{at::zeros({kSize, kSize})}, std::vector<at::Tensor>{g},
                  context_of(rotation(config).interval, 1e-3));
  const NamedTensors state = optimizer->state();
  const auto lost = [](const at::Tensor& before, const at::Tensor& after) {
    return before.t().mm(after).abs().amax(1).lt(0.9).sum().item<int64_t>();
  };
  return lost(u, state.at("w/left_basis")) + lost(v, state.at("w/right_basis"));
}

TEST(BasisRotation, ARefreshKeepsAnExactBasis) {
  for (const double span : {1e4, 1e6}) {
    EXPECT_EQ(columns_lost(config_of("basis-rotation"), span), 0) << span;
    OptimizerConfig config = config_of("basis-rotation");
    rotation(config).iteration_products = "bf16";
    EXPECT_GT(columns_lost(config, span), 10) << span << ": why these are fp32";
  }
}

TEST(BasisRotation, CovariancesHaveAMemoryOfTheirOwn) {
  at::manual_seed(18);
  const at::Tensor g = at::randn({4, 4});
  for (const double beta : {0.0, 0.5}) {
    OptimizerConfig config = config_of("basis-rotation");
    config.beta2 = 0.9;
    rotation(config).covariance_every = 1;
    rotation(config).covariance_beta = beta;
    auto optimizer = make_optimizer(config, {matrix("w", 4, 4, true)});
    optimizer->step(std::vector<at::Tensor>{at::zeros({4, 4})}, std::vector<at::Tensor>{g.clone()},
                    context_of(1, 1e-3));
    const NamedTensors state = optimizer->state();
    EXPECT_TRUE(at::allclose(state.at("w/left_covariance"), g.mm(g.t()) * (beta == 0 ? 0.1 : 0.5)));
    EXPECT_TRUE(at::allclose(state.at("w/exp_avg_sq"), g.square() * 0.1));
  }
}

// The left basis after 40 updates.
at::Tensor basis_after(const std::string& source, double beta2, double covariance_beta) {
  OptimizerConfig config = config_of("basis-rotation");
  rotation(config).source = source;
  rotation(config).interval = 2;
  config.beta2 = beta2;
  rotation(config).covariance_beta = covariance_beta;
  auto optimizer = make_optimizer(config, {matrix("w", 4, 4, true)});
  at::manual_seed(19);
  for (int64_t update = 1; update <= 40; ++update) {
    optimizer->step(std::vector<at::Tensor>{at::zeros({4, 4})}, std::vector<at::Tensor>{at::randn({4, 4})},
                    context_of(update, 1e-3));
  }
  return optimizer->state().at("w/left_basis").clone();
}

TEST(BasisRotation, WhereTheCovariancesHaveAMemoryThatOfSecondMomentsMovesNoBasis) {
  for (const char* source : {"second", "first"}) {
    EXPECT_TRUE(basis_after(source, 0.9, 0.5).equal(basis_after(source, 0.999, 0.5))) << source;
    EXPECT_FALSE(basis_after(source, 0.9, 0).equal(basis_after(source, 0.999, 0))) << source;
  }
}

TEST(BasisRotation, ASketchOfEverythingIsTheWholeBasis) {
  at::manual_seed(12);
  OptimizerConfig config = config_of("basis-rotation");
  rotation(config).long_sides = "whole";
  rotation(config).interval = 5;
  auto whole = make_optimizer(config, {matrix("w", 8, 5, true)});
  rotation(config).max_dimension = 5;
  auto unrotated = make_optimizer(config, {matrix("w", 8, 5, true)});  // its long side, that is
  rotation(config).sketch = 8;
  auto sketched = make_optimizer(config, {matrix("w", 8, 5, true)});
  at::Tensor a = at::randn({8, 5}), b = a.clone(), c = a.clone();
  const at::Tensor scales = at::logspace(0, -1.5, 8, 10, at::kFloat).unsqueeze(1);
  const at::Tensor turn = random_orthogonal(8);
  for (int64_t t = 1; t <= 200; ++t) {
    const at::Tensor g = turn.mm(scales * at::randn({8, 5}));
    whole->step(std::vector<at::Tensor>{a}, std::vector<at::Tensor>{g.clone()}, context_of(t, 1e-3));
    sketched->step(std::vector<at::Tensor>{b}, std::vector<at::Tensor>{g.clone()}, context_of(t, 1e-3));
    unrotated->step(std::vector<at::Tensor>{c}, std::vector<at::Tensor>{g.clone()}, context_of(t, 1e-3));
  }
  // Not the same numbers: the sketch begins at random directions and its average forgets those.
  EXPECT_LT((a - b).norm().item<double>(), 0.3 * (a - c).norm().item<double>());
}

TEST(BasisRotation, ARefreshInTheBackgroundComesAtItsUpdate) {
  at::manual_seed(13);
  OptimizerConfig config = config_of("basis-rotation");
  rotation(config).interval = 5;
  auto at_once = make_optimizer(config, {matrix("w", 6, 4, true)});
  rotation(config).refresh_lag = 2;
  auto lagging = make_optimizer(config, {matrix("w", 6, 4, true)});
  auto again = make_optimizer(config, {matrix("w", 6, 4, true)});
  auto adamw = make_optimizer(config_of("adamw"), {matrix("w", 6, 4, true)});
  at::Tensor a = at::randn({6, 4}), b = a.clone(), c = a.clone(), d = a.clone();
  for (int64_t t = 1; t <= 40; ++t) {
    const at::Tensor g = at::randn({6, 4});
    at_once->step(std::vector<at::Tensor>{a}, std::vector<at::Tensor>{g.clone()}, context_of(t, 1e-2));
    lagging->step(std::vector<at::Tensor>{b}, std::vector<at::Tensor>{g.clone()}, context_of(t, 1e-2));
    again->step(std::vector<at::Tensor>{c}, std::vector<at::Tensor>{g.clone()}, context_of(t, 1e-2));
    adamw->step(std::vector<at::Tensor>{d}, std::vector<at::Tensor>{g.clone()}, context_of(t, 1e-2));
    EXPECT_TRUE(b.equal(c)) << t;
    EXPECT_EQ(b.equal(d), t < 7) << t;  // the refresh of update 5 is there at update 7
    EXPECT_EQ(a.equal(d), t < 5) << t;
  }
}

// Large models have hundreds of sides, all of which may be due at one update.
TEST(BasisRotation, RefreshesInTheBackgroundShareOneThread) {
  const auto threads = [] {
    const std::filesystem::directory_iterator all("/proc/self/task");
    return std::distance(begin(all), end(all));
  };
  OptimizerConfig config = config_of("basis-rotation");
  rotation(config).interval = 4;
  rotation(config).refresh_lag = 2;
  std::vector<ParameterSpec> specs;
  std::vector<at::Tensor> weights;
  for (int i = 0; i < 8; ++i) {
    specs.push_back(matrix("w" + std::to_string(i), 96, 64, true));
    weights.push_back(at::randn({96, 64}));
  }
  auto optimizer = make_optimizer(config, specs);
  std::vector<std::ptrdiff_t> counts;
  for (int64_t t = 1; t <= 9; ++t) {
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& weight : weights) gradients.push_back(at::randn_like(weight));
    optimizer->step(weights, gradients, context_of(t, 1e-2));
    counts.push_back(threads());
  }
  // Those of update 4 are taken at update 6, so by then all of them are made.
  for (int64_t t = 6; t <= 9; ++t) EXPECT_EQ(counts[t - 1], counts[2] + 1) << t;
}

// Threads that a program starts later use as many threads as before: those of the plug-in's users set no number.
TEST(BasisRotation, ARefreshInTheBackgroundLimitsNoOtherThread) {
  const int before = at::get_num_threads();
  at::set_num_threads(3);
  OptimizerConfig config = config_of("basis-rotation");
  rotation(config).interval = 2;
  rotation(config).refresh_lag = 1;
  auto optimizer = make_optimizer(config, {matrix("w", 6, 4, true), matrix("x", 4, 5, true)});
  const std::vector<at::Tensor> weights = {at::randn({6, 4}), at::randn({4, 5})};
  for (int64_t t = 1; t <= 9; ++t) {
    optimizer->step(weights, std::vector<at::Tensor>{at::randn({6, 4}), at::randn({4, 5})}, context_of(t, 1e-2));
  }
  int of_another = 0;
  std::thread([&] { of_another = at::get_num_threads(); }).join();
  EXPECT_EQ(of_another, 3);
  at::set_num_threads(before);
}

TEST(BasisRotation, DegenerateGradientsStayFinite) {
  for (const char* products : {"fp32", "bf16", "sketch"}) {
    OptimizerConfig config = config_of("basis-rotation");
    if (std::string(products) == "sketch") {
      rotation(config).max_dimension = 5;
      rotation(config).sketch = 2;
    } else {
      rotation(config).products = rotation(config).covariance_products = rotation(config).iteration_products = products;
    }
    rotation(config).interval = 3;
    auto optimizer = make_optimizer(config, {matrix("w", 8, 6, true)});
    at::Tensor w = at::ones({8, 6});
    for (int64_t t = 1; t <= 40; ++t) {
      at::Tensor g = at::zeros({8, 6});  // zero, then rank one, then tiny
      if (t > 10) g[0][0] = 1;
      if (t > 25) g = at::full({8, 6}, 1e-20f);
      optimizer->step(std::vector<at::Tensor>{w}, std::vector<at::Tensor>{g}, context_of(t, 1e-2));
    }
    EXPECT_TRUE(w.isfinite().all().item<bool>());
    for (const auto& [name, tensor] : optimizer->state()) EXPECT_TRUE(tensor.isfinite().all().item<bool>()) << name;
  }
}

TEST(BasisRotation, LongSidesStayAsTheyAre) {
  OptimizerConfig config;
  rotation(config).max_dimension = 8;
  rotation(config).interval = 2;
  auto optimizer = make("basis-rotation", matrix("w", 6, 20, true), config);
  at::manual_seed(1);
  at::Tensor w = at::zeros({6, 20});
  for (int64_t t = 1; t <= 6; ++t) step(*optimizer, w, at::randn({6, 20}), context_of(t, 1e-3));
  EXPECT_EQ(optimizer->state().count("w/left_basis"), 1u);
  EXPECT_EQ(optimizer->state().count("w/right_basis"), 0u);
  // Both sides too long: AdamW to the bit.
  rotation(config).max_dimension = 4;
  auto unrotated = make("basis-rotation", matrix("w", 6, 20, true), config),
       plain = make("adamw", matrix("w", 6, 20, true));
  at::Tensor a = at::zeros({6, 20}), b = at::zeros({6, 20});
  for (int64_t t = 1; t <= 20; ++t) {
    const at::Tensor g = at::randn({6, 20});
    step(*unrotated, a, g, context_of(t, 1e-3));
    step(*plain, b, g, context_of(t, 1e-3));
  }
  EXPECT_TRUE(a.equal(b));
}

// f = w'Hw / 2, H = Rot(angle) diag(100, 1) Rot(angle)', from eigen-coordinates (1, 1); AdamW with lr 0.01 and
// gradients taken `delay` updates ago. The first update after which f < 0.01.
int64_t updates_to_converge(double angle, int64_t delay, bool rotated) {
  const double c = std::cos(angle), s = std::sin(angle);
  const at::Tensor q = at::tensor({c, -s, s, c}).view({2, 2}).to(at::kFloat);
  const at::Tensor h = q.mm(at::diag(at::tensor({100.0f, 1.0f}))).mm(q.t());
  ParameterSpec spec = matrix("w", 2, 1, rotated);
  spec.decay = false;
  OptimizerConfig config = config_of(rotated ? "basis-rotation" : "adamw");
  rotation(config).long_sides = "whole";
  rotation(config).interval = 1'000'000;
  auto optimizer = make_optimizer(config, {spec});
  if (rotated) optimizer->load_state(frozen_state(q, at::eye(1)));
  at::Tensor w = q.mm(at::ones({2, 1}));
  std::vector<at::Tensor> history = {w.clone()};
  for (int64_t t = 1; t < 10000; ++t) {
    const at::Tensor& stale = history[static_cast<size_t>(std::max<int64_t>(0, t - 1 - delay))];
    optimizer->step(std::vector<at::Tensor>{w}, std::vector<at::Tensor>{h.mm(stale)}, context_of(t, 0.01));
    if (0.5 * w.t().mm(h).mm(w).item<double>() < 1e-2) return t;
    history.push_back(w.clone());
  }
  return 10000;
}

TEST(BasisRotation, MisalignmentIsWhatMakesDelayHurt) {
  // The published experiment in two dimensions; figures within 2%.
  const std::map<int64_t, std::pair<int64_t, int64_t>> expected = {
      {0, {203, 1837}}, {1, {202, 1853}}, {4, {196, 1897}}, {8, {186, 1949}}, {16, {165, 2592}}, {32, {129, 4921}}};
  for (const auto& [delay, counts] : expected) {
    const double aligned = static_cast<double>(updates_to_converge(0, delay, false));
    const double misaligned = static_cast<double>(updates_to_converge(M_PI / 4, delay, false));
    const double rotated = static_cast<double>(updates_to_converge(M_PI / 4, delay, true));
    EXPECT_NEAR(aligned, static_cast<double>(counts.first), 0.02 * static_cast<double>(counts.first)) << delay;
    EXPECT_NEAR(misaligned, static_cast<double>(counts.second), 0.02 * static_cast<double>(counts.second)) << delay;
    EXPECT_NEAR(rotated, aligned, 0.02 * aligned) << delay;
  }
}

}  // namespace
}  // namespace gyre
