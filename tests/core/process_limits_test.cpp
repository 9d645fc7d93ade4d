// Limits that are too low are errors before anything is needed.
#include "gyre/core/process_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gyre/core/error.h"

namespace gyre {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ProcessLimits, WhatThereIsRoomForPasses) {
  check_room_for_threads(3, size_t{1} << 20, "three threads");
  check_address_space(0, "nothing");
}

TEST(ProcessLimits, WhatThereIsNoRoomForIsNamed) {
  EXPECT_THAT([] { check_room_for_threads(2, size_t{1} << 60, "two threads"); },
              ThrowsMessage<RunError>(AllOf(HasSubstr("two threads: out of memory"), HasSubstr("ulimit -v"))));
}

}  // namespace
}  // namespace gyre
