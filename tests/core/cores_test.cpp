// Which cores threads may run on, and how workers share them.
#include "gyre/core/cores.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "support/temporary_directory.h"

namespace gyre {
namespace {

using Cores = std::vector<int>;

TEST(Cores, WorkersTakeThemByTurns) {
  const Cores cores = {0, 2, 4, 6};
  EXPECT_EQ(cores_of_worker(cores, 0, 1), Cores{0});
  EXPECT_EQ(cores_of_worker(cores, 3, 1), Cores{6});
  EXPECT_EQ(cores_of_worker(cores, 4, 1), Cores{0});
  EXPECT_EQ(cores_of_worker(cores, 1, 2), (Cores{4, 6}));
  EXPECT_EQ(cores_of_worker(cores, 1, 3), (Cores{0, 2, 6}));
  EXPECT_EQ(cores_of_worker(cores, 1, 9), cores);
  EXPECT_EQ(cores_of_worker({}, 1, 2), Cores{});
}

// Directory trees as Linux has them.
class CoreQuotas : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  int count() const { return usable_core_count(root_); }

  const testing_support::TemporaryDirectory directory_;
  const std::filesystem::path root_ = directory_.path();
  const int all_ = static_cast<int>(usable_cores().size());
};

TEST_F(CoreQuotas, OfAControlGroupAboveTheProcessLimitsIt) {
  EXPECT_EQ(count(), all_);
  write("proc/self/cgroup", "0::/user/run\n");
  write("sys/fs/cgroup/user/run/cpu.max", "max 100000\n");
  EXPECT_EQ(count(), all_);
  write("sys/fs/cgroup/user/cpu.max", "50000 100000\n");
  EXPECT_EQ(count(), 1);
  write("sys/fs/cgroup/user/cpu.max", "110000 100000\n");
  EXPECT_EQ(count(), std::min(2, all_));
  EXPECT_EQ(static_cast<int>(usable_cores().size()), all_);  // what threads may be pinned to stays
}

TEST_F(CoreQuotas, OfTheFirstVersionLimitItToo) {
  write("proc/self/cgroup", "9:cpuset:/a\n5:cpu,cpuacct:/docker/x\n0::/\n");
  write("sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(count(), all_);
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "25000\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(count(), 1);
}

TEST(Cores, AThreadStaysWhereItIsPut) {
  const Cores before = usable_cores();
  ASSERT_FALSE(before.empty());
  Cores during, inherited;
  int count = 0;
  std::jthread([&] {
    stay_on({before.back()});
    during = usable_cores();
    count = usable_core_count();
    std::jthread([&] { inherited = usable_cores(); });
  }).join();
  EXPECT_EQ(during, Cores{before.back()});
  EXPECT_EQ(inherited, during);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(usable_cores(), before);
}

}  // namespace
}  // namespace gyre
