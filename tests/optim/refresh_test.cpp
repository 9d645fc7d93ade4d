// When basis rotation refreshes its bases: by the delays, by their drift.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "fixture.h"

namespace gyre {
namespace {

using namespace testing_support;

TEST(Refresh, StageAwareSpendsTheSameBudgetWhereDelaysAreLong) {
  // Counted by how often the basis changes over 700 updates at 8 stages.
  std::vector<int> refreshes;
  for (int stage = 0; stage < 8; ++stage) {
    OptimizerConfig config;
    rotation(config).refresh = "stage-aware";
    auto optimizer = make("basis-rotation", matrix("w", 5, 5, true), config);
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
  rotation(config).refresh = "stage-aware";
  auto optimizer = make("basis-rotation", matrix("w", 5, 5, true), config);
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
  rotation(config).refresh = "adaptive";
  rotation(config).drift = 0.3;
  auto optimizer = make("basis-rotation", matrix("w", 6, 6, true), config);
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

// For whoever measures a few updates in the place of a whole period.
TEST(Refresh, APeriodSaysHowManyUpdatesDoWhat) {
  for (int64_t interval = 1; interval <= 9; ++interval) {
    for (int64_t lag = 0; lag < interval; ++lag) {
      for (int64_t every = 1; every <= interval; ++every) {
        const auto done_in = [&](int64_t update) {
          if (update % interval == 0) return "refreshes";
          if (lag > 0 && update % interval == lag) return "takes bases";
          return update % every == 0 ? "averages" : "only steps";
        };
        std::map<std::string, int64_t> updates, counted;
        for (int64_t update = 1; update <= interval; ++update) ++updates[done_in(update)];
        OptimizerConfig config = config_of("basis-rotation");
        rotation(config).interval = interval;
        rotation(config).refresh_lag = lag;
        rotation(config).covariance_every = every;
        for (const AlikeUpdates& alike : optimizer_kinds().at("basis-rotation").period(config.own)) {
          counted[done_in(alike.number)] += alike.count;
        }
        EXPECT_EQ(counted, updates) << interval << " " << lag << " " << every;
      }
    }
  }
}

}  // namespace
}  // namespace gyre
