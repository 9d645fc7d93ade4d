// threads: one thread per worker. Workers report over a bounded queue to the calling thread, which hears the observer's
// events, watches for stalls and passes on the first worker's error.
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>

#include "gyre/core/error.h"
#include "gyre/core/process_limits.h"
#include "gyre/runtime/event_queue.h"
#include "gyre/runtime/executor.h"
#include "gyre/runtime/segment_setup.h"

namespace gyre {
namespace {

using Clock = std::chrono::steady_clock;

struct LossEvent {
  int64_t microbatch;
  double loss;
};
struct UpdateEvent {
  int stage;
  int64_t update;
  std::vector<double> squared_norms;
};
struct EndEvent {
  int worker;
  std::exception_ptr error;
};
using WorkerEvent = std::variant<LossEvent, UpdateEvent, EndEvent>;

constexpr size_t kQueueCapacity = 1024;

// What stack, allocator and BLAS reserve of address space for each thread that computes.
constexpr size_t kThreadBytes = size_t{200} << 20;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// One segment under way: its threads, and what they share with the caller.
class ThreadsRun {
 public:
  ThreadsRun(Pipeline& pipeline, const Segment& segment)
      : pipeline_(pipeline),
        segment_(segment),
        setup_(pipeline, segment),
        events_(kQueueCapacity),
        pulses_(setup_.bells.size()),
        watched_(setup_.bells.size()) {
    setup_.add_workers({.loss =
                            [this](int64_t microbatch, double loss) {
                              events_.push(LossEvent{microbatch, loss});
                            },
                        .updated =
                            [this](int stage, int64_t update, std::vector<double> squared_norms) {
                              events_.push(UpdateEvent{stage, update, std::move(squared_norms)});
                            }});
  }

  ~ThreadsRun() { stop_and_join(); }

  SegmentReport run(SegmentObserver& observer) {
    const auto started = Clock::now();
    start_threads();
    const std::stop_callback wake(segment_.interrupt, [this] { events_.wake(); });
    size_t running = threads_.size();
    while (running > 0) {
      const auto event = events_.pop(std::chrono::duration<double>(stall_seconds() / 4));
      if (segment_.interrupt.stop_requested() && !draining_) {
        draining_ = true;
        observer.on_drain(setup_.shared.intake.limit_now());
      }
      watch(observer);
      if (!event) continue;
      if (const auto* loss = std::get_if<LossEvent>(&*event)) {
        observer.on_loss(loss->microbatch, loss->loss);
      } else if (const auto* update = std::get_if<UpdateEvent>(&*event)) {
        observer.on_update(update->stage, update->update, update->squared_norms);
      } else if (const auto* end = std::get_if<EndEvent>(&*event)) {
        if (end->error) {
          stop_and_join();
          std::rethrow_exception(end->error);
        }
        --running;
      }
    }
    stop_and_join();
    return setup_.report(seconds_between(started, Clock::now()));
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

  double stall_seconds() const { return pipeline_.options().stall_seconds; }

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
    at::set_num_threads(pipeline_.options().threads_per_worker);
    Doorbell& bell = *setup_.bells[worker.number()];
    Pulse& pulse = pulses_[worker.number()];
    std::exception_ptr error;
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
      error = std::current_exception();
    }
    pulse.ended = true;
    events_.push(EndEvent{worker.number(), error});
  }

  // Whether a worker is inside an action, or about to be: one whose bell has rung is not waiting any more.
  bool is_inside(size_t worker) const {
    const Pulse& pulse = pulses_[worker];
    return !pulse.ended && !(pulse.waiting && setup_.bells[worker]->ticket() == pulse.ticket);
  }

  // Looks at every worker. Nothing computed and no action finished for stall_seconds: a stall, which no waiting will
  // end. A worker inside one action for so long may be slow, or stuck: that is told, and the run waits.
  void watch(SegmentObserver& observer) {
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
        observer.on_slow_action(
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
    if (draining_ && without_step >= drain_deadline(stall_seconds()) && !told_stuck_) {
      told_stuck_ = true;
      observer.on_stuck_drain(
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
    events_.abandon();
    for (const auto& bell : setup_.bells) bell->ring();
    threads_.clear();
  }

  Pipeline& pipeline_;
  const Segment& segment_;
  SegmentSetup setup_;
  EventQueue<WorkerEvent> events_;
  std::atomic<bool> stopping_ = false;
  std::atomic<uint64_t> steps_ = 0;  // actions finished, by all
  std::vector<Pulse> pulses_;        // [worker]
  // Of the caller alone.
  std::vector<Watched> watched_;  // [worker]
  uint64_t last_steps_ = 0;
  Clock::time_point last_look_ = Clock::now();
  Clock::time_point last_step_ = last_look_;      // when an action was last seen to have finished
  Clock::time_point last_progress_ = last_look_;  // the same, or a worker inside one
  bool draining_ = false;
  bool told_stuck_ = false;
  std::vector<std::jthread> threads_;
};

class ThreadsExecutor final : public Executor {
 public:
  SegmentReport run(Pipeline& pipeline, const Segment& segment, SegmentObserver& observer) override {
    if (!std::exchange(room_is_known_, true)) {
      const int workers = segment.schedule->workers;
      const int threads = workers * pipeline.options().threads_per_worker;
      check_room_for_threads(threads, kThreadBytes,
                             fmt::format("{} workers with [pipeline] threads = {}", workers, threads / workers));
    }
    return ThreadsRun(pipeline, segment).run(observer);
  }

 private:
  bool room_is_known_ = false;
};

}  // namespace

std::unique_ptr<Executor> make_threads_executor() {
  return std::make_unique<ThreadsExecutor>();
}

}  // namespace gyre
