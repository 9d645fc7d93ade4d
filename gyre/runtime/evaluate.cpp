#include "gyre/runtime/evaluate.h"

#include <utility>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/schedule/builders.h"

namespace gyre {
namespace {

struct LossCollector final : SegmentObserver {
  LossCollector(int64_t microbatches, SegmentObserver* watcher)
      : losses(static_cast<size_t>(microbatches)), watcher(watcher) {}
  void on_loss(int64_t microbatch, double loss) override {
    losses[static_cast<size_t>(microbatch)] = loss;
    if (watcher != nullptr) watcher->on_loss(microbatch, loss);
  }
  void on_update(int, int64_t, const std::vector<double>&) override {}
  void on_slow_action(const std::string& what) override {
    if (watcher != nullptr) watcher->on_slow_action(what);
  }
  void on_stuck(const Error& why) override {
    if (watcher != nullptr) watcher->on_stuck(why);
  }
  std::chrono::steady_clock::time_point next_look() const override {
    return watcher != nullptr ? watcher->next_look() : SegmentObserver::next_look();
  }
  void on_look(const std::vector<RankStatus>& processes) override { watcher->on_look(processes); }
  std::vector<double> losses;
  SegmentObserver* watcher;
};

}  // namespace

double evaluate(Pipeline& pipeline, Executor& executor, const BatchSource& batches, int64_t microbatches,
                int64_t updates, ModelWeights weights, SegmentObserver* watcher, std::stop_token stop) {
  if (microbatches < 1) throw InputError("an evaluation needs at least one microbatch");
  const Schedule forward_only = build_forward_only(pipeline.schedule());
  Segment segment;
  segment.schedule = &forward_only;
  segment.batches = &batches;
  segment.first_update = updates;
  segment.microbatches = microbatches;
  segment.weights = weights;
  segment.stop = std::move(stop);
  segment.drains_at_stop = false;
  LossCollector collector(microbatches, watcher);
  executor.run(pipeline, segment, collector);
  double sum = 0;
  for (double loss : collector.losses) sum += loss;  // in microbatch order, whatever the executor
  return sum / static_cast<double>(microbatches);
}

}  // namespace gyre
