// replay: all workers in the calling thread, in turn. The reference that other executors must equal to the bit.
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>

#include "gyre/core/error.h"
#include "gyre/runtime/executor.h"
#include "gyre/runtime/segment_setup.h"

namespace gyre {
namespace {

class ReplayExecutor final : public Executor {
 public:
  SegmentReport run(Pipeline& pipeline, const Segment& segment, SegmentObserver& observer) override {
    const c10::NoGradGuard no_grad;
    at::set_num_threads(pipeline.options().threads_per_worker);
    const auto started = std::chrono::steady_clock::now();

    SegmentSetup setup(pipeline, segment);
    setup.add_workers({.loss = [&](int64_t microbatch, double loss) { observer.on_loss(microbatch, loss); },
                       .updated =
                           [&](int stage, int64_t update, const std::vector<double>& squared_norms) {
                             observer.on_update(stage, update, squared_norms);
                           }});
    bool draining = false;
    while (!run_round(setup)) {
      if (draining || !segment.interrupt.stop_requested()) continue;
      draining = true;
      observer.on_drain(setup.shared.intake.limit_now());
    }
    return setup.report(std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
  }

 private:
  // Every worker performs one action if it can. Returns whether all have finished. A round without progress is a stall.
  static bool run_round(SegmentSetup& setup) {
    bool progress = false;
    bool finished = true;
    for (const auto& worker : setup.workers) {
      const Worker::Step step = worker->try_step();
      progress |= step == Worker::Step::Done;
      finished &= step == Worker::Step::Finished;
    }
    if (!progress && !finished) throw RunError(stall_message(setup));
    return finished;
  }

  static std::string stall_message(const SegmentSetup& setup) {
    std::vector<std::string> lines;
    for (const auto& worker : setup.workers) lines.push_back(worker->status());
    return fmt::format("the pipeline stalled: {}", fmt::join(lines, "; "));
  }
};

}  // namespace

std::unique_ptr<Executor> make_replay_executor() {
  return std::make_unique<ReplayExecutor>();
}

}  // namespace gyre
