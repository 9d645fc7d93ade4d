// Tests that a thread keeps the number of threads that it has set, whatever other threads set meanwhile.
#include "gyre/tensors/thread_count.h"

#include <gtest/gtest.h>

#include <thread>

namespace gyre {
namespace {

TEST(ThreadCount, IsEachThreadsOwn) {
  int of_the_first = 0;
  std::thread([&] {
    use_threads(2);
    std::thread([] { use_threads(1); }).join();  // before the first has done anything
    of_the_first = at::get_num_threads();
  }).join();
  EXPECT_EQ(of_the_first, 2);
}

}  // namespace
}  // namespace gyre
