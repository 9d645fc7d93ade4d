// A doorbell: lets a worker sleep until something that it may need has arrived. Whoever delivers rings it. The worker
// takes a ticket, checks whether it can go on, and otherwise waits on the ticket. A ring between ticket and wait is
// never missed.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace gyre {

class Doorbell {
 public:
  uint64_t ticket() const {
    const std::lock_guard lock(mutex_);
    return rings_;
  }
  void ring() {
    {
      const std::lock_guard lock(mutex_);
      ++rings_;
    }
    bell_.notify_all();
  }
  // Returns once the bell has been rung after `ticket` was taken.
  void wait(uint64_t ticket) {
    std::unique_lock lock(mutex_);
    bell_.wait(lock, [&] { return rings_ != ticket; });
  }
  // The same, but for no longer than `timeout`.
  void wait_for(uint64_t ticket, std::chrono::duration<double> timeout) {
    std::unique_lock lock(mutex_);
    bell_.wait_for(lock, timeout, [&] { return rings_ != ticket; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable bell_;
  uint64_t rings_ = 0;
};

}  // namespace gyre
