// The memory limit, read from directory trees as Linux has them.
#include "gyre/core/memory_limit.h"
#include "support/temporary_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace gyre {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class MemoryLimits : public ::testing::Test {
 protected:
  void SetUp() override {
    write("proc/meminfo",
          "MemTotal:       32000 kB\nMemFree: 5 kB\nMemAvailable:   16000 kB\nSwapFree:        1000 kB\n");
  }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  const testing_support::TemporaryDirectory directory_;
  const fs::path root_ = directory_.path();
};

TEST_F(MemoryLimits, TheMachinesIsWhatIsAvailableAndSwap) {
  const MemoryLimit limit = memory_limit(root_);
  EXPECT_EQ(limit.bytes, 17000.0 * 1024);
  EXPECT_EQ(limit.with("16.6 MiB"), "this machine has 16.6 MiB of memory available");
}

TEST_F(MemoryLimits, AControlGroupAboveTheProcessLimitsIt) {
  write("proc/self/cgroup", "0::/user/run\n");
  write("sys/fs/cgroup/user/run/memory.max", "max\n");
  write("sys/fs/cgroup/user/memory.max", "4096\n");
  EXPECT_EQ(memory_limit(root_).bytes, 4096);
  EXPECT_THAT(memory_limit(root_).what, HasSubstr("control group"));
}

TEST_F(MemoryLimits, TheFirstVersionOfControlGroupsToo) {
  write("proc/self/cgroup", "9:cpu:/a\n5:memory:/docker/x\n0::/\n");
  write("sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "8192\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(memory_limit(root_).bytes, 8192);
}

TEST_F(MemoryLimits, WhatCannotBeReadLimitsNothing) {
  write("proc/meminfo", "nonsense");
  write("proc/self/cgroup", "::\n0\n\n0::/gone\n");
  EXPECT_EQ(memory_limit(root_).what, memory_limit(root_ / "absent").what);
}

}  // namespace
}  // namespace gyre
