// Tests the planner on made-up profiles for which the answer is known.
#include "gyre/plan/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "gyre/core/bytes.h"
#include "gyre/core/error.h"
#include "gyre/schedule/builders.h"
#include "gyre/simulate/memory.h"

namespace gyre {
namespace {

// Blocks of one second with a light embedding and a heavy head.
std::vector<LayerProfile> profiles(int blocks, double head = 1) {
  std::vector<LayerProfile> layers;
  for (int i = 0; i < blocks + 2; ++i) {
    LayerProfile layer;
    layer.forward = i == 0 ? 0.01 : i == blocks + 1 ? head : 1;
    layer.backward_input = layer.backward_weights = layer.forward;
    layer.update = 0.01;
    layer.input_bytes = layer.output_bytes = 10;
    layer.activation_bytes = 1000;
    layer.weight_bytes = 100;
    layer.gradient_bytes = 200;
    layer.optimizer_bytes = 400;
    layers.push_back(layer);
  }
  return layers;
}

PlanOptions four_workers() {
  PlanOptions options;
  options.workers = 4;
  options.window = 8;
  options.tokens_per_microbatch = 100;
  return options;
}

TEST(Plan, ReplicasMultiplyTheTokensOfEverySchedule) {
  PlanOptions options = four_workers();
  const Plan one = make_plan(profiles(8), options);
  options.replicas = 3;
  for (const bool shard_optimizer : {false, true}) {
    options.shard_optimizer = shard_optimizer;
    const Plan three = make_plan(profiles(8), options);
    ASSERT_EQ(three.rows.size(), one.rows.size());
    for (const PlanRow& row : one.rows) {
      const auto same = std::find_if(three.rows.begin(), three.rows.end(), [&](const PlanRow& other) {
        return other.schedule.name == row.schedule.name && other.pipelines == 3 * row.pipelines;
      });
      ASSERT_NE(same, three.rows.end()) << row.schedule.name;
      EXPECT_EQ(same->schedule.window, row.schedule.window) << "of one replica";
      const double expected = 3 * row.tokens_per_second;
      if (shard_optimizer) {
        EXPECT_GT(same->tokens_per_second, expected) << "each updates a third";
      } else {
        EXPECT_NEAR(same->tokens_per_second, expected, 1e-9 * expected);
      }
      EXPECT_EQ(same->max_delay, row.max_delay);
    }
  }
}

// DualPipeV's and ZB-V's two stages are on one worker.
TEST(Plan, OnlyWhatGoesToAnotherWorkerIsAMessage) {
  PlanOptions options = four_workers();
  for (const PlanRow& row : make_plan(profiles(8), options).rows) {
    EXPECT_EQ(row.message_bytes, 10) << row.schedule.name;
  }
  options.workers = 1;
  for (const PlanRow& row : make_plan(profiles(8), options).rows) {
    EXPECT_EQ(row.message_bytes, 0) << row.schedule.name << ", " << row.schedule.stages;
  }
}

TEST(Plan, RanksEveryScheduleByPredictedThroughput) {
  const Plan plan = make_plan(profiles(8), four_workers());
  std::set<std::string> names;
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    names.insert(plan.rows[i].schedule.name);
    if (i > 0) {
      EXPECT_LE(plan.rows[i].tokens_per_second, plan.rows[i - 1].tokens_per_second * (1 + 1e-9));
    }
    EXPECT_FALSE(plan.rows[i].recompute);
  }
  EXPECT_EQ(names.size(), schedule_names().size());
  EXPECT_NEAR(plan.tb_over_tf, 2, 1e-9);
  const auto row = [&](const std::string& name) {
    for (const PlanRow& candidate : plan.rows) {
      if (candidate.schedule.name == name) return candidate;
    }
    return PlanRow{};
  };
  EXPECT_GT(row("pipedream").tokens_per_second, row("1f1b").tokens_per_second);
  EXPECT_GT(row("zb-h1").tokens_per_second, row("1f1b").tokens_per_second);
  EXPECT_GT(row("gpipe").peak_memory, row("1f1b").peak_memory);
  EXPECT_EQ(row("1f1b").max_delay, 0);
  EXPECT_EQ(row("amdp").max_mismatch, 1);
}

// A larger update has its cost less often, and is other training: it does not make a schedule better.
TEST(Plan, RanksUpdatesOfOneSizeAmongThemselves) {
  auto layers = profiles(8);
  for (LayerProfile& layer : layers) layer.update = 1;
  PlanOptions options = four_workers();
  options.window = 1;
  options.replicas = 2;
  const Plan plan = make_plan(layers, options);
  EXPECT_EQ(plan.update, 2);
  EXPECT_EQ(plan.rows.front().update(), 2);
  EXPECT_GT(plan.rows.back().update(), 2);
  double most = 0;
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const PlanRow& row = plan.rows[i];
    most = std::max(most, row.tokens_per_second);
    if (i == 0) continue;
    const PlanRow& before = plan.rows[i - 1];
    EXPECT_LE(before.update(), row.update());
    if (before.update() == row.update()) {
      EXPECT_LE(row.tokens_per_second, before.tokens_per_second * (1 + 1e-9));
    }
  }
  EXPECT_GT(most, plan.rows.front().tokens_per_second) << "of a larger update";
}

TEST(Plan, TheCommonWindowIsTheSmallestThatMakesAllUpdatesEqual) {
  const auto are_equal = [](const Plan& plan) { return plan.rows.front().update() == plan.rows.back().update(); };
  for (const int workers : {2, 3, 4, 6}) {
    PlanOptions options = four_workers();
    options.workers = workers;
    options.window = 1;
    const Plan plan = make_plan(profiles(12), options);
    ASSERT_GT(plan.common_window, 1) << workers;
    while (++options.window < plan.common_window) EXPECT_FALSE(are_equal(make_plan(profiles(12), options))) << workers;
    const Plan common = make_plan(profiles(12), options);
    EXPECT_TRUE(are_equal(common)) << workers;
    EXPECT_EQ(common.rows.size(), plan.rows.size());
    EXPECT_EQ(common.common_window, 0) << "there is nothing to make equal";
  }
}

// Rounding makes rows of equal speed differ by a little, and does not rank them.
TEST(Plan, OfEquallyFastRowsTheLessLateIsFirstAndThenTheSmaller) {
  int equal = 0;
  for (const int workers : {1, 2, 4, 8}) {
    for (const int64_t window : {8, 16, 24}) {
      PlanOptions options = four_workers();
      options.workers = workers;
      options.window = window;
      const Plan plan = make_plan(profiles(16), options);
      const auto cost = [](const PlanRow& row) { return std::tuple{row.max_delay, row.peak_memory}; };
      for (size_t i = 1; i < plan.rows.size(); ++i) {
        const PlanRow &before = plan.rows[i - 1], &row = plan.rows[i];
        if (before.update() < row.update()) continue;
        if (before.tokens_per_second > row.tokens_per_second * (1 + 1e-10)) continue;
        EXPECT_LE(cost(before), cost(row)) << workers << " workers, window " << window << ": " << before.schedule.name
                                           << " before " << row.schedule.name;
        ++equal;
      }
    }
  }
  EXPECT_GT(equal, 20);
}

TEST(Plan, AHeavyHeadIsWhereAmdpGains) {
  // The head costs more than a balanced stage: schedules with one pipeline wait for it, AMDP shares it among workers.
  const Plan plan = make_plan(profiles(8, 4), four_workers());
  double amdp = 0, one_pipeline = 0;
  for (const PlanRow& row : plan.rows) {
    if (row.schedule.name == "amdp") amdp = std::max(amdp, row.tokens_per_second);
    if (row.schedule.name == "pipedream") one_pipeline = row.tokens_per_second;
  }
  EXPECT_GT(amdp, 1.1 * one_pipeline);
}

TEST(Plan, MemoryLimitDropsOrRecomputes) {
  PlanOptions options = four_workers();
  const Plan all = make_plan(profiles(8), options);
  int64_t most = 0;
  for (const PlanRow& row : all.rows) most = std::max(most, row.peak_memory);
  options.memory_limit = most / 2;
  const Plan some = make_plan(profiles(8), options);
  bool recomputes = false;
  for (const PlanRow& row : some.rows) {
    EXPECT_LE(row.peak_memory, options.memory_limit);
    recomputes |= row.recompute;
  }
  EXPECT_TRUE(recomputes);
  options.memory_limit = 10;
  try {
    make_plan(profiles(8), options);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("no schedule fits in 10 B"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("the least is"));
  }
}

TEST(Plan, MemoryThatIsNeededAndItsLimitDoNotLookAlike) {
  auto layers = profiles(8);
  for (LayerProfile& layer : layers) layer.weight_bytes = 1 << 20;
  PlanOptions options = four_workers();
  Plan plan = make_plan(layers, options);
  int64_t most = 0;
  while (plan.left_out.empty()) {
    most = 0;
    for (const PlanRow& row : plan.rows) most = std::max(most, row.peak_memory);
    options.memory_limit = most - 1;
    plan = make_plan(layers, options);
  }
  const auto [needed, limit] = distinct_bytes(static_cast<double>(most), static_cast<double>(most - 1));
  EXPECT_NE(needed, limit);
  EXPECT_THAT(plan.left_out.front(),
              ::testing::EndsWith(": needs " + needed + " even with recompute, more than " + limit));
}

TEST(Plan, SaysWhyNoScheduleSuits) {
  PlanOptions options = four_workers();
  options.workers = 12;
  try {
    make_plan(profiles(8), options);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::StartsWith("no schedule suits the model and its workers; gpipe: 12 stages"));
    EXPECT_THAT(error.what(), ::testing::Not(::testing::HasSubstr("fits in")));
  }
}

TEST(Plan, RanksTheScheduleOfAFile) {
  PlanOptions options = four_workers();
  options.from_file = {{.name = "mine.sched", .stages = 4, .window = 8},
                       make_schedule({.name = "1f1b", .stages = 4, .window = 8})};
  const Plan plan = make_plan(profiles(8), options);
  const auto of = [&](const std::string& name) {
    return *std::ranges::find(plan.rows, name, [](const PlanRow& row) { return row.schedule.name; });
  };
  EXPECT_EQ(of("mine.sched").tokens_per_second, of("1f1b").tokens_per_second);
  EXPECT_EQ(of("mine.sched").peak_memory, of("1f1b").peak_memory);
}

// The tied weight's copies and messages are counted for gyre's own schedules as for one of a file.
TEST(Plan, CountsATiedWeight) {
  std::vector<LayerProfile> layers = profiles(8);
  layers.front().tied_bytes = layers.back().tied_bytes = 50'000;
  PlanOptions options = four_workers();
  const Plan untied = make_plan(layers, options);
  options.tied = true;
  const ScheduleOptions mine{.name = "mine.sched", .stages = 4, .window = 8, .tied = true};
  options.from_file = {mine, make_schedule({.name = "pipedream", .stages = 4, .window = 8, .tied = true})};
  const Plan tied = make_plan(layers, options);
  const auto peak = [](const Plan& plan, const std::string& name) {
    return std::ranges::find(plan.rows, name, [](const PlanRow& row) { return row.schedule.name; })->peak_memory;
  };
  EXPECT_EQ(peak(tied, "pipedream"), peak(tied, "mine.sched"));
  EXPECT_GE(peak(tied, "pipedream"), peak(untied, "pipedream") + 50'000);
}

// Under the default of a run, updates wait for the gradients of all stages wherever there is a flush.
TEST(Plan, ClippingByACommonNormTakesTime) {
  PlanOptions options = four_workers();
  const auto rate = [&](const std::string& name) {
    const Plan plan = make_plan(profiles(8, 2), options);
    const auto row = std::ranges::find(plan.rows, name, [](const PlanRow& r) { return r.schedule.name; });
    return row == plan.rows.end() ? 0 : row->tokens_per_second;
  };
  options.clip_scope = ClipScope::Stage;
  const double pipedream = rate("pipedream"), zb_h1 = rate("zb-h1");
  options.clip_scope = ClipScope::Auto;
  EXPECT_EQ(rate("pipedream"), pipedream);
  EXPECT_LT(rate("zb-h1"), 0.99 * zb_h1);
  options.clip_scope = ClipScope::Global;
  EXPECT_EQ(rate("pipedream"), 0) << "it has no flush";
  EXPECT_LT(rate("zb-h1"), 0.99 * zb_h1);
  EXPECT_THAT(make_plan(profiles(8), options).left_out,
              ::testing::Contains(::testing::HasSubstr("pipedream: [optimizer] clip_scope = \"global\" needs a")));
}

TEST(Plan, SaysWhyAScheduleIsLeftOut) {
  PlanOptions options = four_workers();
  options.workers = 5;
  const Plan plan = make_plan(profiles(4), options);
  EXPECT_THAT(plan.left_out, ::testing::Contains(::testing::HasSubstr("chimera: ")));
  EXPECT_THAT(plan.left_out, ::testing::Contains(::testing::HasSubstr("10 stages need as many layers")));
}

// One layer's update costs as much as eight passes.
TEST(Plan, StagesAreBalancedByUpdatesToo) {
  auto layers = profiles(4, 0.01);
  layers[1].update = 8 * 3;
  const Schedule two = make_schedule({.name = "pipedream", .stages = 2, .window = 1});
  const CostModel often = stage_costs(layers, two, 1, false, 100), rarely = stage_costs(layers, two, 1000, false, 100);
  EXPECT_NEAR(often.stages[0].forward, 1.01, 1e-12) << "it is alone beside the embedding";
  EXPECT_NEAR(rarely.stages[0].forward, 2.01, 1e-12);
}

// Between the second layer's backward and the first one's, the first layer's activations and the second's gradients are
// in memory.
TEST(Plan, GradientsTakeThePlaceOfActivationsLayerByLayer) {
  std::vector<LayerProfile> layers(2);
  layers[0].activation_bytes = 10;
  layers[0].gradient_bytes = 5;
  layers[0].passing_bytes = layers[0].weights_passing_bytes = 1;
  layers[1].activation_bytes = 20;
  layers[1].gradient_bytes = 50;
  layers[1].passing_bytes = layers[1].weights_passing_bytes = 2;
  const Schedule one = make_schedule({.name = "1f1b", .stages = 1, .window = 1});
  const StageCost second_most = stage_costs(layers, one, 1, false, 100).stages[0];
  EXPECT_EQ(second_most.replaced_bytes, (30 + 55 + 2) - (30 + 50 + 2));
  layers[0].gradient_bytes = 50;
  const StageCost first_most = stage_costs(layers, one, 1, false, 100).stages[0];
  EXPECT_EQ(first_most.replaced_bytes, (30 + 100 + 2) - (10 + 100 + 1));
  layers[0].gradient_bytes = 5;
  layers[1].passing_bytes = 40;
  const StageCost before_its_own = stage_costs(layers, one, 1, false, 100).stages[0];
  EXPECT_EQ(before_its_own.replaced_bytes, (30 + 55 + 40) - (30 + 50 + 2)) << "40 without the gradients of its weights";
}

// A layer of someone's own may say only what its backward holds beside the gradients of its weights.
TEST(Plan, WhatABackwardHoldsIsAtLeastWhatItHoldsBesideItsGradients) {
  std::vector<LayerProfile> layers(1);
  layers[0].forward = layers[0].backward_input = layers[0].backward_weights = 1;
  layers[0].activation_bytes = 10;
  layers[0].gradient_bytes = 5;
  layers[0].weights_passing_bytes = 7;
  const Schedule one = make_schedule({.name = "1f1b", .stages = 1, .window = 1});
  const StageCost cost = stage_costs(layers, one, 1, false, 100).stages[0];
  EXPECT_EQ(cost.passing_bytes, 7);
  EXPECT_EQ(cost.replaced_bytes, 0);
  PlanOptions options;
  options.tokens_per_microbatch = 100;
  EXPECT_NO_THROW(make_plan(layers, options));
}

// Bytes that only a split backward holds count if the schedule splits the stage's backward.
TEST(Plan, LogitsOfASplitBackwardAreHeld) {
  auto layers = profiles(4, 2);
  layers.back().split_bytes = 12345;
  for (const char* name : {"1f1b", "zb-h1"}) {
    const Schedule schedule = make_schedule({.name = name, .stages = 2, .window = 4});
    const int64_t split = splits_backward(schedule, 1) ? 12345 : 0;
    EXPECT_EQ(split != 0, schedule.name == "zb-h1");
    const CostModel with = stage_costs(layers, schedule, 4, false, 100);
    const CostModel without = stage_costs(profiles(4, 2), schedule, 4, false, 100);
    EXPECT_EQ(with.stages[1].split_bytes, split) << name;
    EXPECT_EQ(with.stages[1].activation_bytes, without.stages[1].activation_bytes) << name;
    EXPECT_EQ(with.stages[0].split_bytes, 0) << name;
  }
}

TEST(Plan, WhatAnOptimizerHoldsForLateGradientsGrowsWithTheirDelay) {
  auto layers = profiles(4);
  const Schedule schedule = make_schedule({.name = "pipedream", .stages = 3, .window = 1});
  const CostModel without = stage_costs(layers, schedule, 1, false, 100);
  for (LayerProfile& layer : layers) layer.late_bytes = 7;
  const CostModel with = stage_costs(layers, schedule, 1, false, 100);
  for (int stage = 0; stage < 3; ++stage) {
    const int64_t layers_there = without.stages[stage].weight_bytes / 100;
    EXPECT_EQ(with.stages[stage].optimizer_bytes - without.stages[stage].optimizer_bytes,
              (2 - stage) * layers_there * 7);
  }
}

TEST(Plan, UpdatesHoldMoreWhereGradientsAreLateAndOwnersWhereWeightsAreForecast) {
  auto layers = profiles(4);
  for (LayerProfile& layer : layers) {
    layer.forecast_bytes = 7;
    layer.update_bytes = 3;
    layer.late_update_bytes = 5;
  }
  Schedule schedule = make_schedule({.name = "pipedream", .stages = 3, .window = 1});
  const CostModel without = stage_costs(layers, schedule, 1, false, 100);
  schedule.weights = WeightPolicy::Predict;
  const CostModel with = stage_costs(layers, schedule, 1, false, 100);
  for (int stage = 0; stage < 3; ++stage) {
    const bool is_late = stage < 2;
    const int64_t layers_there = without.stages[stage].weight_bytes / 100;
    EXPECT_EQ(without.stages[stage].update_bytes, is_late ? 5 : 3);
    EXPECT_EQ(with.stages[stage].update_bytes, without.stages[stage].update_bytes) << "a forecast is one pass";
    EXPECT_EQ(with.stages[stage].optimizer_bytes - without.stages[stage].optimizer_bytes,
              is_late ? layers_there * 7 : 0);
  }
}

TEST(Plan, StageCostsAddUpToTheLayers) {
  const auto layers = profiles(6, 2);
  const Schedule three = make_schedule({.name = "pipedream", .stages = 3, .window = 1});
  const CostModel costs = stage_costs(layers, three, 1, false, 100);
  double forward = 0, expected = 0;
  int64_t weights = 0;
  for (const StageCost& cost : costs.stages) {
    forward += cost.forward;
    weights += cost.weight_bytes;
  }
  for (const LayerProfile& layer : layers) expected += layer.forward;
  EXPECT_NEAR(forward, expected, 1e-12);
  EXPECT_EQ(weights, 8 * 100);
}

// Layers that save 1000 bytes, of which 10 are their input, so groups are single layers.
TEST(Plan, RecomputeRepeatsForwardsAndKeepsInputs) {
  const auto layers = profiles(6, 2);
  const Schedule three = make_schedule({.name = "pipedream", .stages = 3, .window = 1});
  const CostModel costs = stage_costs(layers, three, 1, false, 100);
  const CostModel again = stage_costs(layers, three, 1, true, 100);
  for (int stage = 0; stage < 2; ++stage) {
    const StageCost &once = costs.stages[stage], &twice = again.stages[stage];
    EXPECT_NEAR(twice.backward, once.backward + once.forward, 1e-12);
    EXPECT_EQ(twice.activation_bytes, once.activation_bytes / 100) << "an input for each layer";
    EXPECT_EQ(twice.passing_bytes, 1000 - 10) << "the last layer's, which has its input already";
  }
  // The last stage's backward follows its forward, so the head, which is a group, is not repeated.
  EXPECT_NEAR(again.stages[2].backward, costs.stages[2].backward + costs.stages[2].forward - 2, 1e-12);
  EXPECT_EQ(again.stages[2].activation_bytes, costs.stages[2].activation_bytes / 100 - 10 + 1000);
  EXPECT_EQ(again.stages[2].passing_bytes, 0);
}

// A single stage has one microbatch in flight.
TEST(Plan, RecomputeSavesMemoryInASingleStage) {
  const auto layers = profiles(14, 1);
  const Schedule one = make_schedule({.name = "1f1b", .stages = 1, .window = 4});
  const auto peak = [&](bool recompute) {
    const CostModel costs = stage_costs(layers, one, 4, recompute, 100);
    const WorkerMemory memory = peak_memory(one, costs, one.weights)[0];
    return memory.activations + memory.passing;
  };
  EXPECT_EQ(peak(false), 16 * 1000);
  EXPECT_EQ(peak(true), 15 * 10 + 1000);
}

// Between the halves of a split backward a stage holds what all layers saved, by whatever forward.
TEST(Plan, RecomputeHoldsWholeStagesWhereBackwardsAreSplit) {
  const auto layers = profiles(6, 2);
  const Schedule split = make_schedule({.name = "zb-h1", .stages = 2, .window = 4});
  ASSERT_TRUE(splits_backward(split, 0));
  const StageCost once = stage_costs(layers, split, 4, false, 100).stages[0];
  const StageCost twice = stage_costs(layers, split, 4, true, 100).stages[0];
  EXPECT_EQ(twice.activation_bytes, 10);
  EXPECT_EQ(twice.split_bytes, once.activation_bytes - 10);
  EXPECT_EQ(twice.passing_bytes, once.activation_bytes - 10);
}

}  // namespace
}  // namespace gyre
