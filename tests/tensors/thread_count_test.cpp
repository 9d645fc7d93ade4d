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

TEST(ThreadCount, OfOneThreadAloneIsNotTheNextOnes) {
  const int before = at::get_num_threads();
  at::set_num_threads(3);
  int of_the_one = 0, of_the_next = 0;
  std::thread([&] {
    use_threads_here_alone(1);
    std::thread([&] { of_the_next = at::get_num_threads(); }).join();
    of_the_one = at::get_num_threads();
  }).join();
  EXPECT_EQ(of_the_one, 1);
  EXPECT_EQ(of_the_next, 3);
  at::set_num_threads(before);
}

}  // namespace
}  // namespace gyre
