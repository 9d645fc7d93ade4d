// Which cores threads may run on, and how workers share them.
#include "gyre/core/cores.h"

#include <gtest/gtest.h>

#include <thread>

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
