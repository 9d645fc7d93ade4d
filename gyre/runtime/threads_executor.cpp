// threads: one thread per worker. Workers report over a bounded queue to the calling thread, which hears the observer's
// events, watches for stalls and passes on the first worker's error.
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <thread>
#include <variant>

#include "gyre/core/error.h"
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

// One segment under way: its threads, and what they share with the caller.
class ThreadsRun {
 public:
  ThreadsRun(Pipeline& pipeline, const Segment& segment)
      : pipeline_(pipeline), setup_(pipeline, segment), events_(kQueueCapacity), waiting_(setup_.bells.size()) {
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
    for (const auto& worker : setup_.workers) threads_.emplace_back([this, &worker] { work(*worker); });
    size_t running = threads_.size();
    while (running > 0) {
      const auto event = events_.pop(std::chrono::duration<double>(pipeline_.options().stall_seconds / 4));
      check_for_stall();
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
    return setup_.report(std::chrono::duration<double>(Clock::now() - started).count());
  }

 private:
  // The body of a worker's thread.
  void work(Worker& worker) {
    const c10::NoGradGuard no_grad;
    at::set_num_threads(pipeline_.options().threads_per_worker);
    Doorbell& bell = *setup_.bells[worker.number()];
    std::exception_ptr error;
    try {
      while (!stopping_.load()) {
        const uint64_t ticket = bell.ticket();
        const Worker::Step step = worker.try_step();
        if (step == Worker::Step::Finished) break;
        if (step == Worker::Step::Done) {
          steps_.fetch_add(1);
          continue;
        }
        waiting_[worker.number()] = true;
        if (!stopping_.load()) bell.wait(ticket);
        waiting_[worker.number()] = false;
      }
    } catch (...) {
      error = std::current_exception();
    }
    waiting_[worker.number()] = true;  // a finished worker computes nothing: it does not hide a stall of the others
    events_.push(EndEvent{worker.number(), error});
  }

  // A stall: no action finished and nobody computed for stall_seconds.
  void check_for_stall() {
    const uint64_t steps = steps_.load();
    bool computing = false;
    for (const auto& waits : waiting_) computing |= !waits.load();
    const auto now = Clock::now();
    if (steps != last_steps_ || computing) {
      last_steps_ = steps;
      last_progress_ = now;
      return;
    }
    const std::chrono::duration<double> idle = now - last_progress_;
    if (idle.count() < pipeline_.options().stall_seconds) return;
    std::vector<std::string> lines;
    for (const auto& worker : setup_.workers) lines.push_back(worker->status());
    throw RunError(
        fmt::format("the pipeline stalled: no action for {:.0f} s: {}", idle.count(), fmt::join(lines, "; ")));
  }

  void stop_and_join() {
    stopping_ = true;
    events_.abandon();
    for (const auto& bell : setup_.bells) bell->ring();
    threads_.clear();
  }

  Pipeline& pipeline_;
  SegmentSetup setup_;
  EventQueue<WorkerEvent> events_;
  std::atomic<bool> stopping_ = false;
  std::atomic<uint64_t> steps_ = 0;
  std::vector<std::atomic<bool>> waiting_;  // [worker]
  uint64_t last_steps_ = 0;
  Clock::time_point last_progress_ = Clock::now();
  std::vector<std::jthread> threads_;
};

class ThreadsExecutor final : public Executor {
 public:
  SegmentReport run(Pipeline& pipeline, const Segment& segment, SegmentObserver& observer) override {
    return ThreadsRun(pipeline, segment).run(observer);
  }
};

}  // namespace

std::unique_ptr<Executor> make_threads_executor() {
  return std::make_unique<ThreadsExecutor>();
}

}  // namespace gyre
