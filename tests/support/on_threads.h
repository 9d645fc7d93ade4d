// Runs a function on a thread whose operations use several threads.
#pragma once

#include <functional>
#include <thread>

#include "gyre/tensors/thread_count.h"

namespace gyre::testing_support {

inline void on_threads(int count, const std::function<void()>& work) {
  std::jthread([&] {
    use_threads(count);
    work();
  }).join();
}

}  // namespace gyre::testing_support
