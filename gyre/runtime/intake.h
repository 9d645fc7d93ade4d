// The intake: how many microbatches this segment takes in. Stage 0 of every pipeline asks before each forward; a stop
// request lowers the limit to the end of the window that is being taken in, and the pipelines drain.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>

namespace gyre {

class Intake {
 public:
  // `stop`, when given, asks for a drain as soon as it is true (a signal handler may set it).
  Intake(int64_t limit, int64_t window, const std::atomic<bool>* stop) : limit_(limit), window_(window), stop_(stop) {}

  // Whether `microbatch` may enter. All microbatches below an admitted one are, or will be, admitted.
  bool admit(int64_t microbatch) {
    const std::lock_guard lock(mutex_);
    if (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) {
      limit_ = std::min(limit_, (admitted_ + window_ - 1) / window_ * window_);
    }
    if (microbatch >= limit_) return false;
    admitted_ = std::max(admitted_, microbatch + 1);
    return true;
  }
  int64_t limit() const {
    const std::lock_guard lock(mutex_);
    return limit_;
  }

 private:
  mutable std::mutex mutex_;
  int64_t limit_;
  int64_t window_;
  int64_t admitted_ = 0;
  const std::atomic<bool>* stop_;
};

}  // namespace gyre
