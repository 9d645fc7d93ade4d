// Work on many things at once, the results in the order of the things: what comes out is the same whatever the number
// of threads.
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
  // `work` is called on `threads` threads at once, `take` on the thread that puts. With one thread all happens there.
  OrderedWorkers(int threads, std::function<Out(const In&)> work, std::function<void(Out)> take)
      : work_(std::move(work)), take_(std::move(take)), most_(2 * static_cast<size_t>(threads)) {
    for (int i = 0; i < threads && threads > 1; ++i) {
      threads_.emplace_back([this](const std::stop_token& stop) { serve(stop); });
    }
  }
  // What was put and not taken is forgotten; a thread ends what it has begun.
  ~OrderedWorkers() = default;
  OrderedWorkers(const OrderedWorkers&) = delete;
  OrderedWorkers& operator=(const OrderedWorkers&) = delete;

  // Waits, and takes results, while too many are under way. Throws what the work on an earlier one threw.
  void put(In in) {
    if (threads_.empty()) {
      take_(work_(in));
      return;
    }
    while (under_way_.size() >= most_) take_first();
    std::packaged_task<Out()> task([this, in = std::move(in)] { return work_(in); });
    under_way_.push_back(task.get_future());
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }
  // Takes all that is left.
  void finish() {
    while (!under_way_.empty()) take_first();
  }

 private:
  void take_first() {
    Out out = under_way_.front().get();
    under_way_.pop_front();
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
  size_t most_;
  std::deque<std::future<Out>> under_way_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::packaged_task<Out()>> tasks_;  // never more than are under way
  std::vector<std::jthread> threads_;            // last: they use all of the above
};

}  // namespace gyre
