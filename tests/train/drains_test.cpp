// The plan of drain points.
#include "gyre/train/drains.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace gyre {
namespace {

RunSettings settings(int64_t updates, int64_t eval_every, int64_t checkpoint_every, std::vector<int64_t> drains) {
  RunSettings run;
  run.updates = updates;
  run.eval_every = eval_every;
  run.checkpoint_every = checkpoint_every;
  run.drains = std::move(drains);
  return run;
}

std::vector<int64_t> points(const DrainPlan& plan) {
  std::vector<int64_t> points;
  for (int64_t done = 0; done < plan.updates;) points.push_back(done = plan.next(done));
  return points;
}

TEST(DrainPlan, HasWhatTheConfigurationAsksFor) {
  const DrainPlan plan(settings(20, 6, 8, {7, 12, 3, 7, 25}));
  EXPECT_EQ(points(plan), (std::vector<int64_t>{3, 6, 7, 8, 12, 16, 18, 20}));
  EXPECT_TRUE(plan.evaluates_at(6) && plan.evaluates_at(20) && !plan.evaluates_at(8));
  EXPECT_TRUE(plan.checkpoints_at(8) && plan.checkpoints_at(20) && !plan.checkpoints_at(6));
}

TEST(DrainPlan, CountsItsPoints) {
  for (const int64_t updates : {1, 2, 30, 31, 36}) {
    for (const int64_t eval_every : {0, 1, 4, 6, 30, 40}) {
      for (const int64_t checkpoint_every : {0, 1, 6, 9, 36}) {
        for (const std::vector<int64_t>& drains : {std::vector<int64_t>{}, {1}, {30, 7, 7, 12, 36, 99}}) {
          const DrainPlan plan(settings(updates, eval_every, checkpoint_every, drains));
          EXPECT_EQ(plan.count(), std::ssize(points(plan)))
              << fmt::format("{} {} {} {}", updates, eval_every, checkpoint_every, drains.size());
        }
      }
    }
  }
}

// Ten thousand million updates, whose intervals have a least common multiple beyond an int64.
TEST(DrainPlan, CountsThoseOfTheLongestRun) {
  EXPECT_EQ(DrainPlan(settings(10'000'000'000, 1, 0, {})).count(), 10'000'000'000);
  EXPECT_EQ(DrainPlan(settings(10'000'000'000, 9'999'999'999, 9'999'999'998, {})).count(), 3);
}

}  // namespace
}  // namespace gyre
