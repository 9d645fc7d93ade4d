// One segment under way in this process: a thread for each worker that is here, and what they share with the calling
// thread. That one is the conductor's, where the conductor is here; it watches for stalls and passes on the first
// error.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gyre/runtime/executor.h"
#include "gyre/runtime/segment_setup.h"

namespace gyre {

// What there is of the segment in other processes. Null functions: nothing.
struct Elsewhere {
  std::function<std::vector<RankStatus>()> statuses;  // as last heard, by rank
  std::function<void()> raise_failure;                // an Error if one of them cannot go on
  // Lines for the observer: those that have come, where it is; elsewhere, to send one there.
  std::function<std::vector<std::string>()> take_notes;
  std::function<void(const std::string&)> note;
};

// RunError when the threads of the workers that are here cannot be started.
void check_room_for_worker_threads(const Pipeline& pipeline);

class ThreadsRun {
 public:
  // observer: null where the conductor is in another process. All arguments outlive it.
  ThreadsRun(Pipeline& pipeline, const Segment& segment, SegmentObserver* observer, const WrapTransport& wrap,
             Elsewhere elsewhere = {});
  ~ThreadsRun() { stop_and_join(); }
  ThreadsRun(const ThreadsRun&) = delete;
  ThreadsRun& operator=(const ThreadsRun&) = delete;

  // Until all workers have ended: those here, or, with the conductor, wherever they are. The report is the conductor's.
  SegmentReport run();

  // Of this process. Any thread.
  RankStatus status() const;
  // Rings when run() should look what has happened.
  Doorbell& bell() { return *setup_.bells.conductor; }

 private:
  using Clock = std::chrono::steady_clock;

  // What a worker's thread lets others see of itself.
  struct Pulse {
    std::atomic<uint64_t> turns = 0;    // calls of try_step that have come back
    std::atomic<bool> waiting = false;  // sleeps until its bell rings after `ticket`
    std::atomic<uint64_t> ticket = 0;
    std::atomic<bool> ended = false;

    void begin_wait(int worker);
    void end_wait();
    // Seconds without work so far, by the worker that it waited for.
    std::map<int, double> waited() const;

   private:
    mutable std::mutex mutex_;
    std::map<int, double> waited_;
    std::optional<Clock::time_point> since_;  // while it waits
    int waits_for_ = kNobody;
  };
  // What the caller has seen of it.
  struct Watched {
    uint64_t turns = 0;
    Clock::time_point since = Clock::now();  // for how long nothing else has been seen
    bool told = false;
  };

  double stall_seconds() const { return options_.stall_seconds; }
  void start_threads();
  void work(size_t index);
  std::exception_ptr first_error();
  bool finished() const;
  bool is_inside(size_t index) const;
  void watch();
  void pass_on_notes();
  void tell_slow_actions(bool was_away);
  void find_stall(bool was_away);
  std::vector<RankStatus> statuses_everywhere() const;
  void let_look();
  void stop_and_join();

  const RuntimeOptions& options_;
  const Segment& segment_;
  SegmentObserver* observer_;
  Elsewhere elsewhere_;
  SegmentSetup setup_;
  const std::vector<int> cores_;  // that workers are pinned to; none: they are not
  std::atomic<bool> stopping_ = false;
  std::atomic<uint64_t> steps_ = 0;  // actions finished, by all that are here
  std::vector<Pulse> pulses_;        // as setup_.workers
  std::mutex error_mutex_;
  std::exception_ptr error_;  // the first of any worker
  // Of the caller alone.
  std::vector<Watched> watched_;
  uint64_t last_steps_ = 0;
  const Clock::time_point started_ = Clock::now();
  Clock::time_point last_look_ = started_;
  Clock::time_point last_step_ = last_look_;      // when an action was last seen to have finished
  Clock::time_point last_progress_ = last_look_;  // the same, or a worker inside one
  bool told_stuck_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace gyre
