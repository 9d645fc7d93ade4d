// One segment while it runs in this process: one thread per worker, and what they share with the calling thread. The
// calling thread runs the conductor, if this process has it; it watches for stalls and rethrows the first error.
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

#include "gyre/core/error.h"
#include "gyre/runtime/executor.h"
#include "gyre/runtime/segment_setup.h"

namespace gyre {

// Access to the segment's part in other processes. Null functions: there is none.
struct Elsewhere {
  std::function<std::vector<RankStatus>()> statuses;          // as last reported, by rank
  std::function<uint64_t()> parts;                            // of messages, that have come (RankStatus)
  std::function<std::string(int)> name_of;                    // of another rank
  std::function<void()> raise_failure;                        // throws an Error if one of them cannot go on
  std::function<void(const std::exception&)> report_failure;  // tells them that this process cannot
  // Lines for the observer. take_notes: those that have come, in the observer's process; note: sends one to it.
  std::function<std::vector<std::string>()> take_notes;
  std::function<void(const std::string&)> note;
  // What SegmentObserver::on_stuck() is to the observer's process.
  std::function<void(const Error&)> abandon;
};

// Throws RunError if the threads of this process's workers cannot be started (threads_executor.cpp).
void check_room_for_worker_threads(const Pipeline& pipeline);

class ThreadsRun {
 public:
  // observer: null if the conductor is in another process. All arguments must outlive it.
  ThreadsRun(Pipeline& pipeline, const Segment& segment, SegmentObserver* observer, const WrapTransport& wrap,
             Elsewhere elsewhere = {});
  ~ThreadsRun() { stop_and_join(); }
  ThreadsRun(const ThreadsRun&) = delete;
  ThreadsRun& operator=(const ThreadsRun&) = delete;

  // Runs until all workers have ended: those of this process or, with the conductor, those of all. The report is empty
  // without the conductor.
  SegmentReport run();

  // The status of this process. Any thread.
  RankStatus status() const;
  // Ringing it makes run() check what has happened.
  Doorbell& bell() { return *setup_.bells.conductor; }

 private:
  using Clock = std::chrono::steady_clock;

  // What a worker's thread publishes about itself.
  struct Pulse {
    std::atomic<uint64_t> turns = 0;    // calls of try_step that have returned
    std::atomic<bool> waiting = false;  // it sleeps until its bell rings after `ticket`
    std::atomic<uint64_t> ticket = 0;
    std::atomic<bool> ended = false;

    void begin_wait(int worker);
    void end_wait();
    // Seconds without work so far, by the worker it waited for.
    std::map<int, double> waited() const;

   private:
    mutable std::mutex mutex_;
    std::map<int, double> waited_;
    std::optional<Clock::time_point> since_;  // set while it waits
    int waits_for_ = kNobody;
  };
  // What the calling thread last saw of a worker.
  struct Watched {
    uint64_t turns = 0;
    Clock::time_point since = Clock::now();  // since when the worker has been inside this one turn
    bool told = false;
  };

  double stall_seconds() const { return options_.stall_seconds; }
  void run_to_end();
  void end_after(const std::exception& error);
  void give_up(const Error& why);
  void start_threads();
  void work(size_t index);
  std::exception_ptr first_error();
  bool finished() const;
  bool is_inside(size_t index) const;
  bool is_time_to_look();
  void pass_on_notes();
  void tell_slow_actions(const std::string& then);
  void find_stall();
  std::vector<RankStatus> statuses_everywhere() const;
  void let_look();
  bool all_have_ended() const;
  void tell_to_stop();
  void stop_and_join();

  const RuntimeOptions& options_;
  const Segment& segment_;
  SegmentObserver* observer_;
  Elsewhere elsewhere_;
  SegmentSetup setup_;
  const std::vector<int> cores_;  // that workers are pinned to; empty: they are not pinned
  std::atomic<bool> stopping_ = false;
  std::atomic<uint64_t> steps_ = 0;  // calls of try_step that did something, by all workers of this process
  std::vector<Pulse> pulses_;        // parallel to setup_.workers
  std::mutex error_mutex_;
  std::exception_ptr error_;  // the first error of any worker
  // Used by the calling thread only.
  std::vector<Watched> watched_;
  uint64_t last_steps_ = 0, last_parts_ = 0;
  const Clock::time_point started_ = Clock::now();
  Clock::time_point last_look_ = started_;
  bool was_away_ = false;                     // for longer than stall_seconds before the last look
  Clock::time_point last_step_ = last_look_;  // when an action was last seen to finish
  Clock::time_point last_progress_ =
      last_look_;  // the same, or when a worker was last seen inside one, or part of a message came
  bool told_stuck_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace gyre
