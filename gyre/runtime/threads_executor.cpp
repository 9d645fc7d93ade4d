// threads: one thread per worker. The calling thread is the conductor's; it also watches for stalls and passes on the
// first worker's error.
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/process_limits.h"
#include "gyre/runtime/executor.h"
#include "gyre/runtime/segment_setup.h"
#include "gyre/tensors/thread_count.h"

namespace gyre {
namespace {

using Clock = std::chrono::steady_clock;

// What stack, allocator and BLAS reserve of address space for each thread that computes.
constexpr size_t kThreadBytes = size_t{200} << 20;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// One segment under way: its threads, and what they share with the caller.
class ThreadsRun {
 public:
  ThreadsRun(Pipeline& pipeline, const Segment& segment, SegmentObserver& observer, const WrapTransport& wrap)
      : options_(pipeline.options()),
        segment_(segment),
        observer_(observer),
        setup_(pipeline, segment, observer, wrap),
        pulses_(setup_.workers.size()),
        watched_(setup_.workers.size()) {}

  ~ThreadsRun() { stop_and_join(); }

  SegmentReport run() {
    const auto started = Clock::now();
    Doorbell& bell = *setup_.bells.conductor;
    setup_.conductor.attend();  // a drain that is due already takes nothing in
    start_threads();
    const std::stop_callback wake(segment_.interrupt, [&bell] { bell.ring(); });
    for (;;) {
      const uint64_t ticket = bell.ticket();
      setup_.conductor.attend();
      if (const auto error = first_error()) {
        stop_and_join();
        std::rethrow_exception(error);
      }
      if (setup_.conductor.finished()) break;
      watch();
      bell.wait_for(ticket, std::chrono::duration<double>(stall_seconds() / 4));
    }
    stop_and_join();
    return setup_.conductor.report(seconds_between(started, Clock::now()));
  }

 private:
  // What a worker's thread lets the caller see of itself.
  struct Pulse {
    std::atomic<uint64_t> turns = 0;    // calls of try_step that have come back
    std::atomic<bool> waiting = false;  // sleeps until its bell rings after `ticket`
    std::atomic<uint64_t> ticket = 0;
    std::atomic<bool> ended = false;
  };
  // What the caller has seen of it.
  struct Watched {
    uint64_t turns = 0;
    Clock::time_point since = Clock::now();  // for how long nothing else has been seen
    bool told = false;
  };

  double stall_seconds() const { return options_.stall_seconds; }

  void start_threads() {
    for (const auto& worker : setup_.workers) {
      try {
        threads_.emplace_back([this, &worker] { work(*worker); });
      } catch (const std::system_error& error) {
        throw RunError(
            fmt::format("the thread of worker {} of {} cannot be started: {}; raise the limit of processes "
                        "(ulimit -u), or use fewer stages",
                        worker->number(), setup_.workers.size(), error.code().message()));
      }
    }
  }

  // The body of a worker's thread.
  void work(Worker& worker) {
    const c10::NoGradGuard no_grad;
    use_threads(options_.threads_per_worker);
    Doorbell& bell = setup_.bells.of(worker.number());
    Pulse& pulse = pulses_[worker.number()];
    try {
      while (!stopping_.load()) {
        const uint64_t ticket = bell.ticket();
        const Worker::Step step = worker.try_step();
        pulse.turns.fetch_add(1);
        if (step == Worker::Step::Finished) break;
        if (step == Worker::Step::Done) {
          steps_.fetch_add(1);
          continue;
        }
        pulse.ticket = ticket;
        pulse.waiting = true;
        if (!stopping_.load()) bell.wait(ticket);
        pulse.waiting = false;
      }
    } catch (...) {
      const std::lock_guard lock(error_mutex_);
      if (!error_) error_ = std::current_exception();
    }
    pulse.ended = true;
    setup_.bells.conductor->ring();
  }

  std::exception_ptr first_error() {
    const std::lock_guard lock(error_mutex_);
    return error_;
  }

  // Whether a worker is inside an action, or about to be: one whose bell has rung is not waiting any more.
  bool is_inside(size_t worker) const {
    const Pulse& pulse = pulses_[worker];
    return !pulse.ended && !(pulse.waiting && setup_.bells.workers[worker]->ticket() == pulse.ticket);
  }

  // Looks at every worker. Nothing computed and no action finished for stall_seconds: a stall, which no waiting will
  // end. A worker inside one action for so long may be slow, or stuck: that is reported, and the run goes on waiting.
  void watch() {
    const auto now = Clock::now();
    const double since_look = seconds_between(last_look_, now);
    if (since_look < stall_seconds() / 8) return;
    last_look_ = now;
    // Time in which this thread did not look says nothing of the others: the process was stopped, or a message blocked.
    const bool was_away = since_look > stall_seconds();
    bool computing = false;
    for (size_t worker = 0; worker < pulses_.size(); ++worker) {
      const bool inside = is_inside(worker);
      const uint64_t turns = pulses_[worker].turns.load();
      Watched& watched = watched_[worker];
      computing |= inside;
      if (!inside || turns != watched.turns || was_away) {
        watched = {turns, now, false};
      } else if (const double seconds = seconds_between(watched.since, now);
                 seconds >= stall_seconds() && !watched.told) {
        watched.told = true;
        observer_.on_slow_action(
            fmt::format("worker {} has been inside {} for {:.0f} s ([pipeline] stall_seconds); the run waits for it",
                        worker, setup_.workers[worker]->action(), seconds));
      }
    }

    const uint64_t steps = steps_.load();
    if (steps != last_steps_ || was_away) last_step_ = last_progress_ = now;
    if (computing) last_progress_ = now;
    last_steps_ = steps;
    const double idle = seconds_between(last_progress_, now);
    if (idle >= stall_seconds()) {
      throw RunError(fmt::format("the pipeline stalled: no action for {:.0f} s: {}", idle, statuses()));
    }
    const double without_step = seconds_between(last_step_, now);
    if (setup_.conductor.interrupted() && without_step >= drain_deadline(stall_seconds()) && !told_stuck_) {
      told_stuck_ = true;
      observer_.on_stuck_drain(
          fmt::format("the drain is given up: no action has finished for {:.0f} s: {}", without_step, statuses()));
    }
  }

  std::string statuses() const {
    std::vector<std::string> lines;
    for (size_t worker = 0; worker < pulses_.size(); ++worker) {
      lines.push_back(is_inside(worker) ? fmt::format("worker {} inside {}", worker, setup_.workers[worker]->action())
                                        : setup_.workers[worker]->status());
    }
    return fmt::format("{}", fmt::join(lines, "; "));
  }

  void stop_and_join() {
    stopping_ = true;
    for (const auto& bell : setup_.bells.workers) bell->ring();
    threads_.clear();
  }

  const RuntimeOptions& options_;
  const Segment& segment_;
  SegmentObserver& observer_;
  SegmentSetup setup_;
  std::atomic<bool> stopping_ = false;
  std::atomic<uint64_t> steps_ = 0;  // actions finished, by all
  std::vector<Pulse> pulses_;        // [worker]
  std::mutex error_mutex_;
  std::exception_ptr error_;  // the first of any worker
  // Of the caller alone.
  std::vector<Watched> watched_;  // [worker]
  uint64_t last_steps_ = 0;
  Clock::time_point last_look_ = Clock::now();
  Clock::time_point last_step_ = last_look_;      // when an action was last seen to have finished
  Clock::time_point last_progress_ = last_look_;  // the same, or a worker inside one
  bool told_stuck_ = false;
  std::vector<std::jthread> threads_;
};

class ThreadsExecutor final : public Executor {
 public:
  explicit ThreadsExecutor(WrapTransport wrap) : wrap_(std::move(wrap)) {}

  SegmentReport run(Pipeline& pipeline, const Segment& segment, SegmentObserver& observer) override {
    if (!std::exchange(room_is_known_, true)) {
      const int workers = segment.schedule->workers;
      const int threads = workers * pipeline.options().threads_per_worker;
      check_room_for_threads(threads, kThreadBytes,
                             fmt::format("{} workers with [pipeline] threads = {}", workers, threads / workers));
    }
    return ThreadsRun(pipeline, segment, observer, wrap_).run();
  }

 private:
  WrapTransport wrap_;
  bool room_is_known_ = false;
};

}  // namespace

std::unique_ptr<Executor> make_threads_executor(WrapTransport wrap) {
  return std::make_unique<ThreadsExecutor>(std::move(wrap));
}

}  // namespace gyre
