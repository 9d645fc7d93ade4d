// The intake: how many microbatches this segment takes in. Stage 0 of every pipeline asks before each forward; a stop
// request lowers the limit to the end of the window that is being taken in, and the pipelines drain.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

namespace gyre {

class Intake {
 public:
  // `stop`, when given, is asked at every admission, by whatever worker; true is a request to drain.
  Intake(int64_t limit, int64_t window, std::function<bool()> stop)
      : limit_(limit), window_(window), stop_(std::move(stop)) {}

  // Whether `microbatch` may enter. All microbatches below an admitted one are, or will be, admitted.
  bool admit(int64_t microbatch) {
    const std::lock_guard lock(mutex_);
    heed_stop();
    if (microbatch >= limit_) return false;
    admitted_ = std::max(admitted_, microbatch + 1);
    return true;
  }
  // The limit, after asking `stop` without waiting for the next admission.
  int64_t limit_now() {
    const std::lock_guard lock(mutex_);
    heed_stop();
    return limit_;
  }
  int64_t limit() const {
    const std::lock_guard lock(mutex_);
    return limit_;
  }

 private:
  void heed_stop() {
    if (stop_ && stop_()) limit_ = std::min(limit_, (admitted_ + window_ - 1) / window_ * window_);
  }

  mutable std::mutex mutex_;
  int64_t limit_;
  int64_t window_;
  int64_t admitted_ = 0;
  std::function<bool()> stop_;
};

}  // namespace gyre
