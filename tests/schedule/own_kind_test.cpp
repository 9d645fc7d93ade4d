// Kinds of schedules that a program adds: what their builders return is checked before anything uses it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "gyre/schedule/builder_parts.h"
#include "gyre/schedule/text.h"
#include "refusal.h"

namespace gyre {
namespace {

using ::testing::HasSubstr;
using testing_support::refusal;

Schedule good(const ScheduleOptions& options) {
  return flushed_pipeline(options, [](int stage, int64_t window, std::vector<Action>& actions) {
    for (int64_t m = 0; m < window; ++m) actions.push_back(forward(stage, m));
    for (int64_t m = 0; m < window; ++m) actions.push_back(backward(stage, m));
  });
}

// What the kind "own" builds with. Other tests of this program meet the kind too, so it is a good one between tests.
Schedule (*builder)(const ScheduleOptions&) = good;

class OwnKind : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (schedule_kinds().find("own") != nullptr) return;  // the tests are repeated
    schedule_kinds().add({"own", "a test's", [](const ScheduleOptions& options) { return builder(options); }});
  }
  void TearDown() override { builder = good; }
};

TEST_F(OwnKind, IsBuiltUnderItsName) {
  builder = [](const ScheduleOptions& options) {
    Schedule schedule = good(options);
    schedule.name = "another";
    return schedule;
  };
  EXPECT_EQ(make_schedule({"own", 3, 4}).name, "own");
  EXPECT_EQ(make_schedule({.name = "own", .stages = 3, .window = 4, .replicas = 2}).workers, 6);
}

TEST_F(OwnKind, FaultsOfItsScheduleNameIt) {
  builder = [](const ScheduleOptions& options) {
    Schedule schedule = good(options);
    schedule.name = "another";
    schedule.programs[1].period.erase(schedule.programs[1].period.begin() + 3);
    return schedule;
  };
  EXPECT_THAT(refusal({"own", 2, 2}), HasSubstr("schedule own: 1B1 on worker 1: is missing"));
}

TEST_F(OwnKind, NumbersOutOfRangeAreRefused) {
  builder = [](const ScheduleOptions& options) {
    Schedule schedule = good(options);
    schedule.programs[0].period[0].stage = -1;
    return schedule;
  };
  EXPECT_THAT(refusal({"own", 2, 2}), HasSubstr("there is no such stage"));
  builder = [](const ScheduleOptions& options) {
    Schedule schedule = good(options);
    schedule.programs[0].period[0].microbatch = -2;
    return schedule;
  };
  EXPECT_THAT(refusal({"own", 2, 2}), HasSubstr("the number must be 0 to"));
}

TEST_F(OwnKind, OtherSizesThanAskedForAreRefused) {
  builder = [](const ScheduleOptions& options) {
    ScheduleOptions longer = options;
    ++longer.window;
    return good(longer);
  };
  EXPECT_THAT(refusal({"own", 2, 3}), HasSubstr("2 stages and a window of 4, and was asked for one of 2 stages and 3"));
  builder = [](const ScheduleOptions& options) { return build_forward_only(good(options)); };
  EXPECT_THAT(refusal({"own", 2, 3}), HasSubstr("for evaluation"));
}

TEST_F(OwnKind, IsNotAskedForSizesWithoutSense) {
  builder = [](const ScheduleOptions&) -> Schedule { throw std::logic_error("asked"); };
  EXPECT_THAT(refusal({"own", 2, 3}), "schedule own: its builder has failed: asked");
  EXPECT_THAT(refusal({"own", 0, 3}), HasSubstr("stages is 0"));
}

TEST_F(OwnKind, MemoryThatRunsOutIsNotItsFault) {
  builder = [](const ScheduleOptions&) -> Schedule { throw std::bad_alloc(); };
  EXPECT_THROW(make_schedule({"own", 2, 2}), std::bad_alloc);
}

TEST_F(OwnKind, NeedsABuilder) {
  try {
    schedule_kinds().add({"own-nothing", "a test's", nullptr});
    FAIL();
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "schedule own-nothing has no build");
  }
  EXPECT_EQ(schedule_kinds().find("own-nothing"), nullptr);
}

TEST(Text, AWorkerThatIsNotThereHasNoLine) {
  const std::string text = to_text(make_schedule({"gpipe", 2, 2}));
  EXPECT_EQ(line_of_worker(text, 1) - line_of_worker(text, 0), 1);
  EXPECT_THROW(line_of_worker(text, 2), std::out_of_range);
}

}  // namespace
}  // namespace gyre
