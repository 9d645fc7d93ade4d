// A bounded queue from the workers to the thread that called the executor.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace gyre {

template <typename Event>
class EventQueue {
 public:
  explicit EventQueue(size_t capacity) : capacity_(capacity) {}

  // Waits while the queue is full; after abandon() events are dropped and nobody waits.
  void push(Event event) {
    {
      std::unique_lock lock(mutex_);
      room_.wait(lock, [&] { return events_.size() < capacity_ || abandoned_; });
      if (abandoned_) return;
      events_.push_back(std::move(event));
    }
    filled_.notify_one();
  }

  // The next event; nothing after `timeout`, or if it was woken.
  std::optional<Event> pop(std::chrono::duration<double> timeout) {
    std::optional<Event> event;
    {
      std::unique_lock lock(mutex_);
      filled_.wait_for(lock, timeout, [&] { return !events_.empty() || woken_; });
      woken_ = false;
      if (events_.empty()) return std::nullopt;
      event = std::move(events_.front());
      events_.pop_front();
    }
    room_.notify_one();
    return event;
  }

  // Ends a pop without an event, this one's or the next.
  void wake() {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    filled_.notify_one();
  }

  void abandon() {
    {
      const std::lock_guard lock(mutex_);
      abandoned_ = true;
    }
    room_.notify_all();
  }

 private:
  size_t capacity_;
  std::mutex mutex_;
  std::condition_variable filled_, room_;
  std::deque<Event> events_;
  bool abandoned_ = false;
  bool woken_ = false;
};

}  // namespace gyre
