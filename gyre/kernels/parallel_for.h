// A loop whose parts run at the same time, on the threads that ATen's own operations use.
#pragma once

#include <cstdint>
#include <functional>

namespace gyre::cpu {

// Calls work(begin, end) for consecutive parts of [0, count), one on each of at::get_num_threads() threads. In a part
// of another such loop, or of an operation's, it makes one call. What `work` throws comes out here.
void parallel_for(int64_t count, const std::function<void(int64_t begin, int64_t end)>& work);

}  // namespace gyre::cpu
