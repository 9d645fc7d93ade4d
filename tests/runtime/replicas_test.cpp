// Data parallelism executed: replicas of whole pipelines give the same bits under every schedule, executor and
// transport, and compute what one pipeline does that takes all their microbatches.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "copying_transport.h"
#include "fixture.h"
#include "gyre/schedule/delay.h"

namespace gyre {
namespace {

using namespace testing_support;

TEST(Replicas, EveryExecutorAndTransportGivesTheSameBits) {
  constexpr int64_t kUpdates = 4;
  std::vector<Experiment> all = every_kind_replicated(2);
  for (Experiment e : {experiment("pipedream", 3, 1), experiment("chimera", 2, 4), experiment("amdp", 4, 7)}) {
    e.replicas = 3;
    e.weights = WeightPolicy::Latest;
    e.compute = at::kBFloat16;
    all.push_back(e);
  }
  for (Experiment& e : all) {
    e.executor = "replay";
    const Outcome replay = run_experiment(e, kUpdates);
    EXPECT_EQ(replay.recorder.losses.size(), static_cast<size_t>(kUpdates * e.window * e.replicas)) << name_of(e);
    e.executor = "threads";
    e.reduction_part = 1000;  // does not divide a stage's gradient
    expect_same(replay, run_experiment(e, kUpdates), name_of(e));
    expect_same(replay, run_experiment(e, kUpdates, copying), name_of(e) + ", copied");
    e.shard_optimizer = false;
    expect_same(replay, run_experiment(e, kUpdates), name_of(e) + ", updated by the first replica");
  }
}

// Microbatch n is the same whoever takes it, and a window has the same microbatches; only the order of additions
// differs.
TEST(Replicas, AreOnePipelineWithLongerWindowsButForRounding) {
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1", "zb-v", "chimera"}) {
    Experiment one = experiment(schedule, 4, 8);
    one.clip_scope = ClipScope::Global;
    Experiment two = one;
    two.window = 4;
    two.replicas = 2;
    two.executor = "threads";
    const Outcome expected = run_experiment(one, 10), found = run_experiment(two, 10);
    ASSERT_EQ(expected.recorder.losses.size(), found.recorder.losses.size());
    for (const auto& [microbatch, loss] : expected.recorder.losses) {
      if (microbatch < 8) {
        EXPECT_EQ(loss, found.recorder.losses.at(microbatch)) << schedule << " " << microbatch;
      }
      EXPECT_NEAR(loss, found.recorder.losses.at(microbatch), 2e-4) << schedule << " " << microbatch;
    }
  }
}

// Also without a flush, as long as nothing is learned: every gradient is in its window exactly once.
TEST(Replicas, TheGradientOfAWindowIsWhole) {
  for (Experiment e : every_kind_replicated(3)) {
    e.learning_rate = 0;
    Experiment one = experiment("gpipe", 1, 3 * e.window);
    one.learning_rate = 0;
    const auto squares = [](const Outcome& outcome, int64_t update) {
      double sum = 0;
      for (const auto& [key, values] : outcome.recorder.norms) {
        if (key.first != update) continue;
        for (const double value : values) sum += value;
      }
      return sum;
    };
    const Outcome expected = run_experiment(one, 3), found = run_experiment(e, 3);
    EXPECT_EQ(found.recorder.losses, expected.recorder.losses) << name_of(e);
    for (int64_t update = 1; update <= 3; ++update) {
      EXPECT_NEAR(squares(found, update), squares(expected, update), 1e-5 * squares(expected, update))
          << name_of(e) << ", update " << update;
    }
  }
}

TEST(Replicas, ADrainIsAtTheEndOfAWindowOfAll) {
  for (Experiment e : {experiment("pipedream", 3, 2), experiment("1f1b", 2, 2), experiment("amdp", 4, 4)}) {
    for (const char* executor : {"replay", "threads"}) {
      e.executor = executor;
      e.replicas = 3;
      std::atomic<bool> stop = false;
      StopAfter observer(6 * e.window + 1, stop);
      Pipeline stopped = make_pipeline(e);
      const SegmentReport report = run_segment(stopped, e, 0, 1000, observer, &stop);
      EXPECT_EQ(report.microbatches % (3 * e.window), 0);
      EXPECT_LT(report.microbatches, 3000 * e.window);
      const Outcome planned = run_experiment(e, report.microbatches / (3 * e.window));
      EXPECT_EQ(planned.recorder.losses, observer.recorder.losses) << name_of(e) << " " << executor;
      EXPECT_TRUE(same_bits(planned.weights, stopped.weights())) << name_of(e) << " " << executor;
    }
  }
}

TEST(Replicas, AllTakePartInAnEvaluation) {
  std::map<int64_t, double> reference;
  for (const int replicas : {1, 2, 3}) {
    for (Experiment e : every_kind_replicated(replicas)) {
      e.executor = replicas == 2 ? "threads" : "replay";
      Pipeline pipeline = make_pipeline(e);
      Recorder recorder;
      const int64_t microbatches = 14;  // not a multiple of the number of replicas
      const SegmentReport report = run_evaluation(pipeline, e.executor, microbatches, recorder);
      EXPECT_EQ(recorder.losses.size(), 14u);
      if (reference.empty()) reference = recorder.losses;
      EXPECT_EQ(recorder.losses, reference) << name_of(e);
      for (const WorkerReport& worker : report.workers) EXPECT_GT(worker.busy_seconds, 0) << name_of(e);
    }
  }
}

// A transport like those across processes, which counts how much of others' gradients each worker holds.
class CountingTransport final : public Transport {
 public:
  struct Held {
    std::mutex mutex;
    std::map<int, int64_t> now, peak;  // [worker]: elements
    void change(int worker, int64_t by) {
      const std::lock_guard lock(mutex);
      now[worker] += by;
      peak[worker] = std::max(peak[worker], now[worker]);
    }
  };
  CountingTransport(Transport& below, std::shared_ptr<Held> held) : below_(below), held_(std::move(held)) {}

  std::unique_ptr<Receiver> receiver(const LinkId& id, const LinkEnds& ends) override {
    return below_.receiver(id, ends);
  }
  std::unique_ptr<Sender> sender(const LinkId& id, const LinkEnds& ends) override {
    const bool is_gradient = id.kind == LinkKind::Reduction || id.kind == LinkKind::Sum;
    if (!is_gradient || ends.from == ends.to) return below_.sender(id, ends);
    struct CountingSender final : Sender {
      CountingSender(std::unique_ptr<Sender> below, std::shared_ptr<Held> held, int to)
          : below(std::move(below)), held(std::move(held)), to(to) {}
      bool has_room() const override { return below->has_room(); }
      void send(Message message) override {
        at::Tensor& tensor = message.tensors[0];
        const int64_t elements = tensor.numel();
        const auto memory = std::make_shared<std::vector<float>>(static_cast<size_t>(elements));
        const at::Tensor copy = at::from_blob(
            memory->data(), {elements},
            [memory, held = held, to = to, elements](void*) { held->change(to, -elements); }, at::kFloat);
        held->change(to, elements);
        copy.copy_(tensor);
        tensor = copy;
        message.lease.reset();
        below->send(std::move(message));
      }
      std::unique_ptr<Sender> below;
      std::shared_ptr<Held> held;
      int to;
    };
    return std::make_unique<CountingSender>(below_.sender(id, ends), held_, ends.to);
  }

 private:
  Transport& below_;
  std::shared_ptr<Held> held_;
};

// Besides its own sum, and however many replicas there are.
TEST(Replicas, NobodyHoldsMoreThanOneGradientOfOthers) {
  for (const char* schedule : {"gpipe", "1f1b", "pipedream", "zb-h1"}) {
    for (const int replicas : {2, 3, 8}) {
      for (const char* executor : {"replay", "threads"}) {
        Experiment e = experiment(schedule, 3, 2);
        e.replicas = replicas;
        e.executor = executor;
        e.reduction_part = 500;
        const auto held = std::make_shared<CountingTransport::Held>();
        Pipeline pipeline = make_pipeline(e);
        Recorder recorder;
        run_segment(pipeline, e, 0, 4, recorder, nullptr, [&](Transport& memory, const Doorbells&) {
          return std::make_unique<CountingTransport>(memory, held);
        });
        int64_t most = 0;
        for (int worker = 0; worker < pipeline.schedule().workers; ++worker) {
          const int64_t gradient = flat_elements(pipeline.owner(worker % 3).layers.parameters());
          EXPECT_LE(held->peak[worker], gradient) << name_of(e) << ", worker " << worker;
          most = std::max(most, held->peak[worker]);
          EXPECT_EQ(held->now[worker], 0) << "all is given back";
        }
        EXPECT_GT(most, 0);
      }
    }
  }
}

// A replica elsewhere may read the previous version while the owner goes on: this costs at most one buffer.
TEST(Replicas, CostOneVersionMore) {
  for (const char* schedule : {"1f1b", "pipedream"}) {
    Experiment e = experiment(schedule, 4, 2);
    const std::vector<size_t> one = peak_weight_buffers(e, 10);
    for (const int replicas : {2, 4}) {
      e.replicas = replicas;
      const std::vector<size_t> all = peak_weight_buffers(e, 10);
      for (size_t stage = 0; stage < 4; ++stage) EXPECT_LE(all[stage], one[stage] + 1) << name_of(e);
    }
  }
}

}  // namespace
}  // namespace gyre
