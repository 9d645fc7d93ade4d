// Runs one worker of a run by itself. What others would send it is made up, at once and of the right sizes, so its
// memory is that of a process with no other worker. Frames between processes are not in it.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gyre/build/build.h"
#include "gyre/core/error.h"
#include "gyre/core/random.h"
#include "gyre/runtime/segment_setup.h"
#include "gyre/schedule/delay.h"
#include "gyre/tensors/flat_buffer.h"

namespace gyre::testing_support {

// Random tokens, of which BERT is asked for 15% and others for all.
class RandomBatches final : public BatchSource {
 public:
  explicit RandomBatches(const Config& config) : config_(config) {}
  Batch batch(int64_t index) const override {
    RandomStream stream(1, StreamPurpose::Test, static_cast<uint64_t>(index));
    const at::Tensor tokens = at::empty({config_.pipeline.microbatch, config_.model.context}, at::kLong);
    at::Tensor targets = at::empty_like(tokens);
    for (int64_t i = 0; i < tokens.numel(); ++i) {
      const auto token = static_cast<int64_t>(stream.below(static_cast<uint64_t>(config_.model.vocabulary)));
      tokens.data_ptr<int64_t>()[i] = token;
      const bool is_asked = config_.model.kind != "bert" || stream.below(100) < 15;
      targets.data_ptr<int64_t>()[i] = is_asked ? token : -1;
    }
    return {tokens, targets};
  }
  int64_t tokens_per_batch() const override { return config_.pipeline.microbatch * config_.model.context; }

 private:
  const Config& config_;
};

class MadeUpTransport final : public Transport {
 public:
  MadeUpTransport(Transport& own, const Pipeline& pipeline, const Config& config, int worker)
      : own_(own), pipeline_(pipeline), config_(config), worker_(worker) {}

  std::unique_ptr<Sender> sender(const LinkId& id, const LinkEnds& ends) override {
    struct ToNobody final : Sender {
      bool has_room() const override { return true; }
      void send(Message) override {}
    };
    if (ends.to == worker_) return own_.sender(id, ends);
    return std::make_unique<ToNobody>();
  }
  std::unique_ptr<Receiver> receiver(const LinkId& id, const LinkEnds& ends) override {
    struct FromNobody final : Receiver {
      FromNobody(const MadeUpTransport& from, const LinkId& id) : from(from), id(id) {
        // What would wait in the link's queue at most, and the weight that is read.
        if (id.kind != LinkKind::TiedWeight && id.kind != LinkKind::TiedSum) return;
        const int64_t read = id.kind == LinkKind::TiedWeight ? 1 : 0;
        for (int64_t i = 0; i < from.first_delay_ + read; ++i) queue.push_back(from.message(id, i));
      }
      std::optional<Message> try_receive(int64_t number) override {
        if (queue.empty()) return from.message(id, number);
        return Message{number, queue.front().tensors, {}, {}};
      }
      std::optional<Message> try_receive() override { return std::nullopt; }
      int64_t waiting() const override { return static_cast<int64_t>(queue.size()); }
      const MadeUpTransport& from;
      LinkId id;
      std::vector<Message> queue;
    };
    if (ends.from == worker_) return own_.receiver(id, ends);
    return std::make_unique<FromNobody>(*this, id);
  }

 private:
  Message message(const LinkId& id, int64_t number) const {
    const auto of_rows = [&](double size) {
      const at::Tensor rows = at::empty({config_.pipeline.microbatch, config_.model.context, config_.model.width},
                                        at::TensorOptions().dtype(compute_type(config_)));
      return rows.normal_(0, size);
    };
    const auto of_shard = [&](at::ScalarType type) {
      const PipelinePlan& plan = pipeline_.plan();
      const auto specs = plan.shards[static_cast<size_t>(id.stage)][static_cast<size_t>(id.shard)].of(
          plan.stages[static_cast<size_t>(id.stage)].parameters());
      return at::full({flat_elements(specs)}, 1e-3, at::TensorOptions().dtype(type));
    };
    const auto of_table = [&](at::ScalarType type) {
      return at::full({config_.model.vocabulary, config_.model.width}, 1e-3, at::TensorOptions().dtype(type));
    };
    switch (id.kind) {
      case LinkKind::Activation:
        return {number, {of_rows(1)}, {static_cast<double>(first_version(number))}, {}};
      case LinkKind::TiedWeight:
        return {number, {of_table(compute_type(config_))}, {}, {}};
      case LinkKind::TiedSum:
        return {number, {of_table(at::kFloat)}, {}, {}};
      case LinkKind::Gradient:
        return {number, {of_rows(1e-4)}, {}, {}};
      case LinkKind::Version:  // -1 is the segment's first
        return {number, {of_shard(compute_type(config_))}, {static_cast<double>(number + 1)}, {}};
      case LinkKind::Sum:
        return {number, {of_shard(at::kFloat)}, {0.0}, {}};
      default:
        throw RunError("nobody makes up " + to_string(id));
    }
  }

  // The version that the pipeline's first stage reads for the microbatch, once the pipeline is full.
  int64_t first_version(int64_t microbatch) const {
    return std::max<int64_t>(0, microbatch / pipeline_.schedule().window - first_delay_);
  }

  Transport& own_;
  const Pipeline& pipeline_;
  const Config& config_;
  int worker_;
  int64_t first_delay_ = longest_delays(pipeline_.schedule()).delay[0];
};

// Makes the worker and runs it through `microbatches`.
inline void run_alone(const Config& config, const Schedule& schedule, int worker, int64_t microbatches) {
  const c10::NoGradGuard no_grad;
  const auto pipeline = build_pipeline(config, schedule, {worker, worker + 1});
  const RandomBatches batches(config);
  Segment segment;
  segment.schedule = &pipeline->schedule();
  segment.batches = &batches;
  segment.microbatches = microbatches;
  SegmentSetup setup(*pipeline, segment, nullptr, [&](Transport& own, const Doorbells&) {
    return std::make_unique<MadeUpTransport>(own, *pipeline, config, worker);
  });
  for (;;) {
    const Worker::Step step = setup.workers.front()->try_step();
    if (step == Worker::Step::Finished) return;
    if (step == Worker::Step::MustWait)
      throw RunError("nobody sends what it waits for: " + to_string(setup.workers.front()->status()));
  }
}

}  // namespace gyre::testing_support
