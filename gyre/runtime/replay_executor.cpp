// replay: runs all workers in turn in the calling thread. The reference, which other executors must equal to the bit.
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/timing.h"
#include "gyre/runtime/executor.h"
#include "gyre/runtime/segment_setup.h"
#include "gyre/tensors/thread_count.h"

namespace gyre {
namespace {

class ReplayExecutor final : public Executor {
 public:
  explicit ReplayExecutor(WrapTransport wrap) : wrap_(std::move(wrap)) {}

  SegmentReport run(Pipeline& pipeline, const Segment& segment, SegmentObserver& observer) override {
    const c10::NoGradGuard no_grad;
    use_threads(pipeline.options().threads_per_worker);
    const auto started = std::chrono::steady_clock::now();
    SegmentSetup setup(pipeline, segment, &observer, wrap_);
    setup.conductor->attend();
    while (!setup.conductor->finished()) {
      run_round(setup);
      setup.conductor->attend();
      if (std::chrono::steady_clock::now() >= observer.next_look()) observer.on_look({status(setup)});
    }
    return setup.conductor->report(seconds_since(started));
  }

 private:
  // Each worker performs its next action if it can. A round without progress is a stall.
  static void run_round(SegmentSetup& setup) {
    bool progress = false;
    bool finished = true;
    for (const auto& worker : setup.workers) {
      const Worker::Step step = worker->try_step();
      progress |= step == Worker::Step::Done;
      finished &= step == Worker::Step::Finished;
    }
    if (!progress && !finished) throw RunError(stall_message(setup));
  }

  static std::string stall_message(const SegmentSetup& setup) {
    return fmt::format("the pipeline stalled: {}", to_string(status(setup).workers));
  }

  static RankStatus status(const SegmentSetup& setup) {
    RankStatus status;
    for (const auto& worker : setup.workers) {
      status.workers.push_back(worker->status());
      status.workers.back().takes_turns = true;
    }
    status.memory = setup.process_memory();
    return status;
  }

  WrapTransport wrap_;
};

}  // namespace

std::unique_ptr<Executor> make_replay_executor(WrapTransport wrap) {
  return std::make_unique<ReplayExecutor>(std::move(wrap));
}

}  // namespace gyre
