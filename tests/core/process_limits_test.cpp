// Limits that are too low are errors before anything is needed.
#include "gyre/core/process_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>

#include "gyre/core/descriptor.h"
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

TEST(ProcessLimits, TheLimitOfOpenFilesIsRaisedAsFarAsAllowed) {
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  struct rlimit limit = {100, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  raise_file_limit();
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(limit.rlim_cur, before.rlim_max);
  EXPECT_EQ(limit.rlim_max, before.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST(ProcessLimits, WhereNoMoreFilesMayBeOpenTheReasonSaysWhatToRaise) {
  errno = EMFILE;
  EXPECT_THAT(reason(), HasSubstr("raise the limit (ulimit -n)"));
}

}  // namespace
}  // namespace gyre
