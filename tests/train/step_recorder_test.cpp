// A step is told when all of it is known, and steps are told in order whatever is known first.
#include "gyre/train/step_recorder.h"

#include <gtest/gtest.h>

#include <vector>

namespace gyre {
namespace {

class Steps : public ::testing::Test {
 protected:
  static Segment segment() {
    static const Schedule schedule = [] {
      Schedule two;
      two.window = 2;
      return two;
    }();
    Segment segment;
    segment.schedule = &schedule;
    segment.first_microbatch = 10;
    segment.first_update = 5;
    return segment;
  }
  std::vector<StepRecord> told_;
  StepRecorder recorder_{2, segment(), [this](const StepRecord& step) { told_.push_back(step); }};
};

TEST_F(Steps, AreToldOnceAllOfThemIsKnown) {
  recorder_.on_loss(11, 3);
  recorder_.on_update(1, 6, {16});
  recorder_.on_loss(10, 1);
  EXPECT_TRUE(told_.empty());
  recorder_.on_update(0, 6, {4, 5});
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0].step, 6);
  EXPECT_EQ(told_[0].loss, 2);
  EXPECT_EQ(told_[0].grad_norm, 5);
  EXPECT_EQ(recorder_.steps(), 1);
}

// As where the window's pipeline has its last stage on another worker than the next window's.
TEST_F(Steps, AreToldInOrderThoughALossComesLate) {
  recorder_.on_loss(10, 1);
  for (const int64_t update : {6, 7}) {
    for (const int stage : {0, 1}) recorder_.on_update(stage, update, {1});
  }
  recorder_.on_loss(12, 1);
  recorder_.on_loss(13, 1);
  EXPECT_TRUE(told_.empty()) << "step " << told_[0].step << " before step 6";
  recorder_.on_loss(11, 1);
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_EQ(told_[0].step, 6);
  EXPECT_EQ(told_[1].step, 7);
}

}  // namespace
}  // namespace gyre
