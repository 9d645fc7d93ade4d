// Limits that are too low are errors before anything is needed.
#include "gyre/core/process_limits.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "gyre/core/descriptor.h"
#include "gyre/core/error.h"
#include "gyre/core/explain.h"
#include "support/limited_child.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
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

class WhyNotStarted : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  const testing_support::TemporaryDirectory directory_;
  const std::filesystem::path root_ = directory_.path();
};

TEST_F(WhyNotStarted, NamesTheLowestLimitOfTheControlGroups) {
  write("proc/self/cgroup", "0::/user/run\n");
  write("sys/fs/cgroup/user/run/pids.max", "max\n");
  EXPECT_THAT(why_not_started(EAGAIN, root_), Not(HasSubstr("control group")));
  write("sys/fs/cgroup/user/pids.max", "100\n");
  EXPECT_THAT(why_not_started(EAGAIN, root_),
              AllOf(StartsWith("Resource temporarily unavailable; processes and threads are limited to "),
                    HasSubstr(fmt::format("100 of the control group ({}/sys/fs/cgroup/user/pids.max)", root_.string())),
                    EndsWith(": raise the limit that is reached, or use fewer")));
  write("sys/fs/cgroup/user/run/pids.max", "20\n");
  EXPECT_THAT(why_not_started(EAGAIN, root_), AllOf(HasSubstr("20 of the control group"), Not(HasSubstr("100"))));
  EXPECT_EQ(why_not_started(ENOMEM, root_), "Cannot allocate memory");
}

TEST_F(WhyNotStarted, SaysAlsoWhatIsMissingWhereNothingIsLimited) {
  if (::getuid() != 0) GTEST_SKIP() << "only root has no limit of processes";
  EXPECT_THAT(why_not_started(EAGAIN, root_), HasSubstr("the system has no memory (ulimit -v) or no numbers"));
}

TEST_F(WhyNotStarted, NamesTheUsersLimit) {
  const std::optional<bool> is_named = testing_support::where_nothing_starts([] {
    try {
      std::thread([] {}).join();
    } catch (const std::exception& error) {
      const std::string text = explain_exception(error);
      return is_refused_thread(error) && text.starts_with("a thread cannot be started: Resource temporarily") &&
             text.find("1 of this user (ulimit -u)") != std::string::npos;
    }
    return false;
  });
  if (!is_named) GTEST_SKIP() << "this root cannot become another user";
  EXPECT_TRUE(*is_named);
}

TEST(ProcessLimits, WhereNoMoreFilesMayBeOpenTheReasonSaysWhatToRaise) {
  errno = EMFILE;
  EXPECT_THAT(reason(), HasSubstr("raise the limit (ulimit -n)"));
}

}  // namespace
}  // namespace gyre
