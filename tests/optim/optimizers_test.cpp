// AdamW, clipping and learning rates against torch and formulas; what all optimizers refuse.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <stdexcept>

#include "fixture.h"
#include "gyre/core/error.h"
#include "gyre/optim/clipping.h"
#include "gyre/optim/learning_rate.h"

namespace gyre {
namespace {

using namespace testing_support;

TEST(AdamW, EqualsTorch) {
  at::manual_seed(1);
  OptimizerConfig config = config_of("adamw");
  config.weight_decay = 0.1;
  ParameterSpec bias;
  bias.name = "b";
  bias.shape = {37};
  auto ours = make_optimizer(config, {matrix("w", 19, 5, false), bias});
  at::Tensor w = at::randn({19, 5}), b = at::randn({37});
  auto tw = w.clone().requires_grad_(), tb = b.clone().requires_grad_();
  torch::optim::AdamW decayed({tw}, torch::optim::AdamWOptions(1e-2).weight_decay(0.1));
  torch::optim::AdamW plain({tb}, torch::optim::AdamWOptions(1e-2).weight_decay(0));
  for (int64_t t = 1; t <= 60; ++t) {
    const at::Tensor gw = at::randn({19, 5}), gb = at::randn({37}) * 1e-3;
    tw.mutable_grad() = gw.clone();
    tb.mutable_grad() = gb.clone();
    decayed.step();
    plain.step();
    ours->step(std::vector<at::Tensor>{w, b}, std::vector<at::Tensor>{gw.clone(), gb.clone()}, context_of(t, 1e-2));
  }
  EXPECT_LT((w - tw).abs().max().item<double>(), 2e-6);
  EXPECT_LT((b - tb).abs().max().item<double>(), 2e-6);
}

// To the bit, so that it does not matter who multiplies.
TEST(AdamW, TakesTheFactorOfClippedGradients) {
  const auto run = [](bool by_factor) {
    at::manual_seed(3);
    auto optimizer = make_optimizer(config_of("adamw"), {matrix("w", 19, 5, false)});
    EXPECT_TRUE(optimizer->takes_gradient_factor());
    at::Tensor w = at::randn({19, 5});
    for (int64_t t = 1; t <= 5; ++t) {
      const at::Tensor gradient = at::randn({19, 5});
      const double factor = 0.1 * static_cast<double>(t);
      UpdateContext context = context_of(t, 1e-2);
      if (by_factor) {
        context.gradient_factor = factor;
      } else {
        gradient.mul_(factor);
      }
      optimizer->step(std::vector<at::Tensor>{w}, std::vector<at::Tensor>{gradient}, context);
    }
    return w;
  };
  EXPECT_TRUE(run(true).equal(run(false)));
  EXPECT_FALSE(make_optimizer(config_of("muon"), {matrix("w", 19, 5, true)})->takes_gradient_factor());
}

TEST(Clipping, EqualsTorch) {
  at::manual_seed(9);
  std::vector<at::Tensor> gradients = {at::randn({13, 7}), at::randn({101}), at::randn({1})};
  std::vector<at::Tensor> parameters;
  for (const auto& gradient : gradients) {
    parameters.push_back(at::zeros_like(gradient).requires_grad_());
    parameters.back().mutable_grad() = gradient.clone();
  }
  const double norm = torch::nn::utils::clip_grad_norm_(parameters, 2.5);
  const std::vector<at::Tensor> squared = {squared_norms(std::span(gradients).first(2)),
                                           squared_norms(std::span(gradients).last(1))};
  const double ours = whole_norm(squared).item<double>();
  EXPECT_NEAR(ours, norm, 1e-5);
  clip(gradients, ours, 2.5);
  for (size_t i = 0; i < gradients.size(); ++i)
    EXPECT_TRUE(at::allclose(gradients[i], parameters[i].grad(), 1e-5, 1e-7));
}

TEST(Clipping, ShortGradientsStayAsTheyAre) {
  at::manual_seed(10);
  const std::vector<at::Tensor> gradients = {at::randn({3, 5})};
  const at::Tensor before = gradients[0].clone(), squared = squared_norms(gradients);
  const double norm = whole_norm({&squared, 1}).item<double>();
  clip(gradients, norm, norm);
  EXPECT_TRUE(gradients[0].equal(before));
}

TEST(LearningRate, FollowsItsFormula) {
  LearningRateSchedule rate{2.0, 10, 110, "cosine", 0.1};
  EXPECT_DOUBLE_EQ(rate.at(1), 0.2);
  EXPECT_DOUBLE_EQ(rate.at(5), 1.0);
  EXPECT_DOUBLE_EQ(rate.at(10), 2.0);
  EXPECT_NEAR(rate.at(60), 2.0 * (0.1 + 0.9 * 0.5), 1e-12);
  EXPECT_NEAR(rate.at(110), 0.2, 1e-12);
  EXPECT_NEAR(rate.at(500), 0.2, 1e-12);
  rate.decay = "linear";
  EXPECT_NEAR(rate.at(35), 2.0 * (0.1 + 0.9 * 0.75), 1e-12);
  rate.decay = "constant";
  EXPECT_DOUBLE_EQ(rate.at(500), 2.0);
}

TEST(LearningRate, InverseSquareRoot) {
  LearningRateSchedule rate{2.0, 16, 1000, "inverse-sqrt", 0.1};
  EXPECT_DOUBLE_EQ(rate.at(8), 1.0);
  EXPECT_DOUBLE_EQ(rate.at(16), 2.0);
  EXPECT_DOUBLE_EQ(rate.at(64), 1.0);
  EXPECT_DOUBLE_EQ(rate.at(400), 0.4);
  EXPECT_DOUBLE_EQ(rate.at(1'000'000), 0.2);  // the floor
  rate.warmup = 0;
  EXPECT_DOUBLE_EQ(rate.at(1), 2.0);
  EXPECT_DOUBLE_EQ(rate.at(4), 1.0);
}

TEST(LearningRate, WarmupStableDecay) {
  LearningRateSchedule rate{2.0, 10, 110, "wsd", 0.1, 40};
  EXPECT_DOUBLE_EQ(rate.at(5), 1.0);
  for (const int64_t stable : {10, 50, 70}) EXPECT_DOUBLE_EQ(rate.at(stable), 2.0);
  const auto left = [](double share) { return 2.0 * (0.1 + 0.9 * share); };
  EXPECT_NEAR(rate.at(80), left(0.75), 1e-12);
  EXPECT_NEAR(rate.at(110), left(0), 1e-12);
  EXPECT_NEAR(rate.at(200), left(0), 1e-12);
  rate.cooldown_shape = "cosine";
  EXPECT_NEAR(rate.at(90), left(0.5), 1e-12);
  rate.cooldown_shape = "sqrt";
  EXPECT_NEAR(rate.at(80), left(0.5), 1e-12);
  rate.cooldown = 0;  // a fifth: 22
  EXPECT_DOUBLE_EQ(rate.at(88), 2.0);
  EXPECT_LT(rate.at(89), 2.0);
  // A cooldown as long as the run begins where the warm-up ends, on its way down.
  rate = {2.0, 10, 20, "wsd", 0, 40};
  EXPECT_DOUBLE_EQ(rate.at(5), 1.0);
  EXPECT_NEAR(rate.at(10), 2.0 * 0.25, 1e-12);
  EXPECT_NEAR(rate.at(20), 0, 1e-12);
}

TEST(Config, BadValuesNameTheirKey) {
  const auto complaint = [](auto change) {
    OptimizerConfig config = config_of("basis-rotation");
    change(config);
    try {
      make_optimizer(config, {matrix("w", 2, 2, true)});
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(complaint([](auto& c) { c.kind = "adamv"; }), ::testing::HasSubstr("did you mean 'adamw'?"));
  EXPECT_THAT(complaint([](auto& c) { c.beta2 = 1; }), ::testing::HasSubstr("[optimizer] betas has a 1"));
  EXPECT_THAT(complaint([](auto& c) { c.epsilon = 0; }), ::testing::HasSubstr("epsilon"));
  // The ranges are those of a configuration.
  EXPECT_THAT(complaint([](auto& c) { c.epsilon = 2; }), ::testing::HasSubstr("[optimizer] epsilon is 2; give 1e-37"));
  EXPECT_THAT(complaint([](auto& c) { c.weight_decay = 1e7; }), ::testing::HasSubstr("[optimizer] weight_decay is 1"));
  EXPECT_THAT(complaint([](auto& c) { rotation(c).interval = 0; }), ::testing::HasSubstr("interval"));
  EXPECT_THAT(complaint([](auto& c) { rotation(c).source = "third"; }), ::testing::HasSubstr("source"));
  EXPECT_THAT(complaint([](auto& c) { rotation(c).refresh_lag = 10; }), ::testing::HasSubstr("refresh_lag"));
  EXPECT_THAT(complaint([](auto& c) { rotation(c).sketch = 8; }), ::testing::HasSubstr("max_dimension"));
  EXPECT_THAT(complaint([](auto& c) { rotation(c).long_sides = "long"; }), ::testing::HasSubstr("long_sides"));
  EXPECT_THAT(complaint([](auto& c) { rotation(c).covariance_every = 0; }), ::testing::HasSubstr("covariance_every"));
  EXPECT_THAT(complaint([](auto& c) { rotation(c).covariance_beta = 1; }),
              ::testing::HasSubstr("covariance_beta is 1"));
  EXPECT_THAT(complaint([](auto& c) { rotation(c).products = "fp8"; }), ::testing::HasSubstr("products is \"fp8\""));
  EXPECT_THAT(complaint([](auto& c) { rotation(c).covariance_products = "fp8"; }),
              ::testing::HasSubstr("covariance_products"));
  EXPECT_THAT(complaint([](auto& c) { rotation(c).iteration_products = "fp8"; }),
              ::testing::HasSubstr("iteration_products"));
}

TEST(OwnOptimizer, NeedsItsFunctions) {
  const auto make = [](const OptimizerConfig&, const std::vector<ParameterSpec>&,
                       at::Device) -> std::unique_ptr<Optimizer> { return nullptr; };
  const auto state_bytes = [](const OptimizerConfig&, const ParameterSpec&) { return 0.0; };
  const auto complaint = [](const OptimizerMaker& maker) {
    try {
      optimizer_makers().add(maker);
    } catch (const std::logic_error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(complaint({"own", nullptr, state_bytes}), "[optimizer] kind own has no make");
  EXPECT_EQ(complaint({"own", make, nullptr}), "[optimizer] kind own has no state_bytes");
}

TEST(State, MissingOrMisshapenIsNamed) {
  auto optimizer = make_optimizer(config_of("adamw"), {matrix("w", 2, 3, false)});
  try {
    optimizer->load_state({{"w/exp_avg", at::zeros({2, 3})}});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("w/exp_avg_sq"));
  }
  EXPECT_THROW(optimizer->load_state({{"w/exp_avg", at::zeros({3, 2})}, {"w/exp_avg_sq", at::zeros({2, 3})}}),
               InputError);
}

}  // namespace
}  // namespace gyre
