// Processes items on several threads and hands over the results in the order of the items, so that the output does not
// depend on the number of threads.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace gyre {

template <typename In, typename Out>
class OrderedWorkers {
 public:
  // `work` is called on `threads` threads, `take` on the thread that calls put() and finish(). With one thread both run
  // in put().
  OrderedWorkers(int threads, std::function<Out(const In&)> work, std::function<void(Out)> take)
      : work_(std::move(work)), take_(std::move(take)), max_pending_(2 * static_cast<size_t>(threads)) {
    for (int i = 0; i < threads && threads > 1; ++i) {
      threads_.emplace_back([this](const std::stop_token& stop) { serve(stop); });
    }
  }
  // Discards results that were not taken, and waits for calls of `work` that have begun.
  ~OrderedWorkers() = default;
  OrderedWorkers(const OrderedWorkers&) = delete;
  OrderedWorkers& operator=(const OrderedWorkers&) = delete;

  // Takes results while too many items are pending. Rethrows what `work` threw for an earlier item.
  void put(In in) {
    if (threads_.empty()) {
      take_(work_(in));
      return;
    }
    while (pending_.size() >= max_pending_) take_first();
    std::packaged_task<Out()> task([this, in = std::move(in)] { return work_(in); });
    pending_.push_back(task.get_future());
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }
  // Takes all remaining results.
  void finish() {
    while (!pending_.empty()) take_first();
  }

 private:
  void take_first() {
    Out out = pending_.front().get();
    pending_.pop_front();
    take_(std::move(out));
  }
  void serve(const std::stop_token& stop) {
    for (;;) {
      std::packaged_task<Out()> task;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, stop, [&] { return !tasks_.empty(); });
        if (stop.stop_requested()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

  std::function<Out(const In&)> work_;
  std::function<void(Out)> take_;
  size_t max_pending_;
  std::deque<std::future<Out>> pending_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::packaged_task<Out()>> tasks_;  // never more than pending_
  std::vector<std::jthread> threads_;            // last: they use all of the above
};

}  // namespace gyre
