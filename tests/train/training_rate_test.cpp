// Tokens per second of steps: a rate over a second of training, however the updates come.
#include "gyre/train/training_rate.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

namespace gyre {
namespace {

class TrainingRateTest : public ::testing::Test {
 protected:
  TrainingRate::Clock::time_point at(double seconds) const {
    return begin_ + std::chrono::duration_cast<TrainingRate::Clock::duration>(std::chrono::duration<double>(seconds));
  }
  TrainingRate rate_;

 private:
  TrainingRate::Clock::time_point begin_ = TrainingRate::Clock::now();
};

// 1,000 updates a second are told ten at a time.
TEST_F(TrainingRateTest, BurstsAreEvenedOut) {
  rate_.go_on(at(0));
  for (int update = 1; update <= 5000; ++update) {
    const double told = (update + 9) / 10 * 0.01;
    const double rate = rate_.update(128, at(told));
    if (told > 1) {
      ASSERT_NEAR(rate, 128'000, 0.011 * 128'000) << update;
    }
  }
}

TEST_F(TrainingRateTest, FollowsWhatTheLastSecondIs) {
  rate_.go_on(at(0));
  for (int update = 1; update <= 30; ++update) rate_.update(100, at(update * 0.1));
  double rate = 0;
  for (int update = 1; update <= 6; ++update) rate = rate_.update(100, at(3 + update * 0.2));
  EXPECT_NEAR(rate, 500, 1e-6);
}

TEST_F(TrainingRateTest, InTheFirstSecondItIsOfTheWholeSession) {
  rate_.go_on(at(0));
  EXPECT_NEAR(rate_.update(100, at(0.5)), 200, 1e-6);
  EXPECT_NEAR(rate_.update(100, at(0.5)), 400, 1e-6);
  EXPECT_NEAR(rate_.update(100, at(0.75)), 400, 1e-6);
}

TEST_F(TrainingRateTest, AnUpdateOfMinutesHasItsOwn) {
  rate_.go_on(at(0));
  EXPECT_NEAR(rate_.update(6000, at(60)), 100, 1e-6);
  EXPECT_NEAR(rate_.update(6000, at(180)), 50, 1e-6);
  EXPECT_NEAR(rate_.update(6000, at(210)), 200, 1e-6);
}

TEST_F(TrainingRateTest, PausesDoNotCount) {
  rate_.go_on(at(0));
  for (int update = 1; update <= 20; ++update) rate_.update(100, at(update * 0.1));
  rate_.stop(at(2));
  rate_.go_on(at(100));
  for (int update = 1; update <= 20; ++update) EXPECT_NEAR(rate_.update(100, at(100 + update * 0.1)), 1000, 1e-3);
}

// Segments shorter than a second are taken together.
TEST_F(TrainingRateTest, GoesOnFromSegmentToSegment) {
  double rate = 0;
  for (int segment = 0; segment < 20; ++segment) {
    rate_.go_on(at(segment * 10));
    rate = rate_.update(100, at(segment * 10 + 0.1));
    rate_.stop(at(segment * 10 + 0.125));  // and a drain
  }
  EXPECT_NEAR(rate, 800, 1);
}

TEST_F(TrainingRateTest, NoTimeIsNoDivisionByZero) {
  rate_.go_on(at(0));
  EXPECT_TRUE(std::isfinite(rate_.update(100, at(0))));
}

}  // namespace
}  // namespace gyre
