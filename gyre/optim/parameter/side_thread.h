// A thread of an optimizer's own, for work that may end a few updates later: one piece at a time, in the order given.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

#include "gyre/tensors/thread_count.h"

namespace gyre {

class SideThread {
 public:
  SideThread() = default;
  // Waits for the piece that has begun; those behind it are dropped.
  ~SideThread() = default;
  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;

  // What `work` returns or throws. The first call starts the thread: std::system_error if there can be none.
  template <typename Work>
  std::future<std::invoke_result_t<Work&>> run(Work work) {
    const std::lock_guard giving(giving_);
    return given(std::move(work));
  }

  // Waits until all that was given is done, and ends the thread; the next run() starts it again. To be called before a
  // process is forked: the new one has no copy of this thread, and would wait for it without end.
  void finish() {
    const std::lock_guard giving(giving_);
    if (!thread_.joinable()) return;
    given([] {}).get();
    thread_ = {};
  }

 private:
  template <typename Work>
  std::future<std::invoke_result_t<Work&>> given(Work work) {
    auto task = std::make_shared<std::packaged_task<std::invoke_result_t<Work&>()>>(std::move(work));
    auto result = task->get_future();
    {
      const std::lock_guard lock(mutex_);
      waiting_.emplace_back([task] { (*task)(); });
    }
    changed_.notify_one();
    if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
    return result;
  }

  void serve(const std::stop_token& stop) {
    use_threads_here_alone(1);  // beside the workers, and the same bits wherever it runs
    for (;;) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, stop, [this] { return !waiting_.empty(); });
        if (stop.stop_requested()) return;
        task = std::move(waiting_.front());
        waiting_.pop_front();
      }
      task();
    }
  }

  std::mutex giving_;  // run() and finish() are called by one thread at a time
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::function<void()>> waiting_;
  std::jthread thread_;  // last, so that it is joined first
};

}  // namespace gyre
