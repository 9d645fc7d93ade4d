// What the simulator refuses of a program that makes its costs and options itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "gyre/core/error.h"
#include "gyre/schedule/builders.h"
#include "gyre/simulate/simulator.h"

namespace gyre {
namespace {

using ::testing::HasSubstr;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

std::string refusal(const Schedule& schedule, const CostModel& costs, const SimulationOptions& options) {
  try {
    simulate(schedule, costs, options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(WrongNumbers, OfCostsAreNamed) {
  const std::vector<std::pair<std::function<void(CostModel&)>, std::string>> faults = {
      {[](CostModel& costs) { costs = uniform_costs(-2); }, "backward is -2; give a finite number, 0 or more"},
      {[](CostModel& costs) { costs = uniform_costs(kNan); }, "backward is nan; give a finite"},
      {[](CostModel& costs) { costs.stages[0].update = kInfinity; }, "update is inf; give a finite"},
      {[](CostModel& costs) { costs.stages[0].output_bytes = -1; }, "output_bytes is -1; give 0 or more"},
      {[](CostModel& costs) { costs.link.latency = -1; }, "link latency is -1; give a finite"},
      {[](CostModel& costs) { costs.link.bandwidth = 0; }, "link bandwidth is 0; give more than 0"},
      {[](CostModel& costs) { costs.link.bandwidth = kNan; }, "link bandwidth is nan; give more than 0"},
      {[](CostModel& costs) { costs.checkpoint = -1; }, "checkpoint is -1; give a finite"},
      {[](CostModel& costs) { costs.tokens_per_microbatch = -1; }, "tokens_per_microbatch is -1; give 0"},
  };
  const Schedule schedule = make_schedule({"1f1b", 4, 8});
  for (const auto& [change, words] : faults) {
    CostModel costs = uniform_costs(2);
    EXPECT_EQ(refusal(schedule, costs, {.microbatches = 8}), "no error");
    change(costs);
    EXPECT_THAT(refusal(schedule, costs, {.microbatches = 8}), HasSubstr(words));
  }
}

// A stage of a large model takes more multiply-adds than a file may have seconds.
TEST(WrongNumbers, AreNotThoseThatAreOnlyLarge) {
  CostModel costs = uniform_costs(2);
  costs.stages[0].forward = 1e18;
  EXPECT_EQ(refusal(make_schedule({"1f1b", 4, 8}), costs, {.microbatches = 8}), "no error");
}

TEST(WrongNumbers, OfARunAreNamed) {
  EXPECT_THAT(refusal(make_schedule({"1f1b", 4, 8}), uniform_costs(2), {.microbatches = 8, .checkpoint_every = -3}),
              HasSubstr("a checkpoint every -3 updates"));
  EXPECT_THAT(refusal(Schedule(), uniform_costs(2), {.microbatches = 8}), HasSubstr("has no programs"));
}

}  // namespace
}  // namespace gyre
