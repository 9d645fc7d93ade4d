// A small GPT on synthetic tokens, run through any schedule and executor: what the runtime's tests share.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gyre/core/random.h"
#include "gyre/model/gpt.h"
#include "gyre/optim/settings/basis_rotation_settings.h"
#include "gyre/plan/partition.h"
#include "gyre/runtime/executor.h"
#include "gyre/runtime/pipeline.h"
#include "gyre/schedule/builders.h"

namespace gyre::testing_support {

// Tokens with some structure: each is its predecessor plus a small random step.
class SyntheticBatches final : public BatchSource {
 public:
  SyntheticBatches(int64_t sequences, int64_t context, int64_t vocabulary)
      : sequences_(sequences), context_(context), vocabulary_(vocabulary) {}
  Batch batch(int64_t index) const override {
    RandomStream stream(5, StreamPurpose::Test, static_cast<uint64_t>(index));
    at::Tensor tokens = at::empty({sequences_, context_ + 1}, at::kLong);
    auto* data = tokens.data_ptr<int64_t>();
    for (int64_t s = 0; s < sequences_; ++s) {
      int64_t token = static_cast<int64_t>(stream.below(vocabulary_));
      for (int64_t t = 0; t <= context_; ++t) {
        data[s * (context_ + 1) + t] = token;
        token = (token + static_cast<int64_t>(stream.below(3))) % vocabulary_;
      }
    }
    return {tokens.narrow(1, 0, context_).contiguous(), tokens.narrow(1, 1, context_).contiguous()};
  }
  int64_t tokens_per_batch() const override { return sequences_ * context_; }

 private:
  int64_t sequences_, context_, vocabulary_;
};

struct Experiment {
  std::string schedule = "pipedream";
  int stages = 4;
  int64_t window = 1;  // of each replica
  int replicas = 1;
  bool shard_optimizer = true;
  std::string executor = "replay";
  at::ScalarType compute = at::kFloat;
  WeightPolicy weights = WeightPolicy::Stash;
  bool recompute = false;
  ClipScope clip_scope = ClipScope::Stage;
  std::string optimizer = "adamw";
  bool bf16_moments = false;
  std::string refresh = "fixed";
  int64_t interval = 10;
  double dropout = 0;
  double stall_seconds = 60;
  double learning_rate = 3e-3;
  int64_t reduction_part = kReductionPart;
  bool pin_workers = false;
  std::optional<Schedule> own_schedule = {};  // instead of one by name
  double ema_decay = 0;
  bool tie = false;  // the output matrix is the table of embeddings
  int64_t refresh_lag = 0;
  std::function<at::Device(int)> device_of = {};  // of each worker; none: the CPU
};

inline ModelSettings tiny_gpt(double dropout = 0) {
  ModelSettings config;
  config.layers = 4;
  config.width = 32;
  config.heads = 4;
  config.context = 16;
  config.vocabulary = 29;
  config.dropout = dropout;
  return config;
}

inline SyntheticBatches tiny_batches() {
  return {2, 16, 29};
}

inline Pipeline make_pipeline(const Experiment& e, WorkerRange here = {}) {
  ModelSettings model = tiny_gpt(e.dropout);
  model.tie = e.tie;
  const Layers layers = build_gpt(model);
  std::vector<double> costs;
  for (const auto& layer : layers) costs.push_back(layer->cost(32));
  RuntimeOptions options;
  options.compute = e.compute;
  options.weights = e.weights;
  options.recompute = e.recompute;
  options.discrepancy = 0.135;
  options.clip = e.clip_scope == ClipScope::None ? 0 : 1;
  options.ema_decay = e.ema_decay;
  options.learning_rate = [rate = e.learning_rate](int64_t update) { return update < 5 ? rate * update / 5 : rate; };
  options.seed = 3;
  options.stall_seconds = e.stall_seconds;
  options.pin_workers = e.pin_workers;
  options.reduction_part = e.reduction_part;
  OptimizerConfig optimizer;
  optimizer.kind = e.optimizer;
  optimizer.bf16_moments = e.bf16_moments;
  if (e.optimizer == "basis-rotation") {
    optimizer.own = BasisRotationSettings{.interval = e.interval, .refresh = e.refresh, .refresh_lag = e.refresh_lag};
  }
  Schedule schedule = e.own_schedule ? *e.own_schedule
                                     : make_schedule({.name = e.schedule,
                                                      .stages = e.stages,
                                                      .window = e.window,
                                                      .replicas = e.replicas,
                                                      .shard_optimizer = e.shard_optimizer});
  set_clip_scope(schedule, e.clip_scope);
  for (int worker = 0; e.device_of && worker < schedule.workers; ++worker) {
    options.devices.push_back(e.device_of(worker));
  }
  return Pipeline(std::move(schedule), layers, partition_by_cost(costs, e.stages), options, optimizer, here);
}

inline Experiment experiment(const std::string& schedule, int stages, int64_t window) {
  Experiment e;
  e.schedule = schedule;
  e.stages = stages;
  e.window = window;
  return e;
}

// Every kind of schedule, also at depths and windows that are not multiples of each other.
inline std::vector<Experiment> every_kind() {
  return {experiment("interleaved-1f1b", 4, 4),
          experiment("interleaved-1f1b", 6, 3),
          experiment("zb-h1", 4, 5),
          experiment("zb-v", 4, 5),
          experiment("zb-v", 6, 3),
          experiment("dualpipe-v", 2, 3),
          experiment("dualpipe-v", 6, 7),
          experiment("chimera", 4, 4),
          experiment("chimera", 2, 6),
          experiment("pipedream-2bw", 3, 3),
          experiment("paci", 4, 2),
          experiment("amdp", 1, 2),
          experiment("amdp", 2, 3),
          experiment("amdp", 3, 4),
          experiment("amdp", 4, 4),
          experiment("amdp", 4, 7),
          experiment("amdp", 4, 8),
          experiment("amdp", 5, 6),
          experiment("amdp", 6, 12)};
}

// Every kind of schedule, and the plain ones, with replicas.
inline std::vector<Experiment> every_kind_replicated(int replicas) {
  std::vector<Experiment> all = every_kind();
  for (const char* plain : {"gpipe", "1f1b", "pipedream"}) all.push_back(experiment(plain, 4, 3));
  all.push_back(experiment("pipedream", 4, 1));
  for (Experiment& e : all) e.replicas = replicas;
  return all;
}

inline std::string name_of(const Experiment& e) {
  return e.schedule + " " + std::to_string(e.stages) + " stages, window " + std::to_string(e.window) + ", " +
         std::to_string(e.replicas) + " replicas";
}

// Records what a run reported.
struct Recorder final : SegmentObserver {
  void on_loss(int64_t microbatch, double loss) override { losses[microbatch] = loss; }
  void on_update(int stage, int64_t update, const std::vector<double>& squared) override {
    norms[{update, stage}] = squared;
  }
  std::map<int64_t, double> losses;
  std::map<std::pair<int64_t, int>, std::vector<double>> norms;
};

// Asks for a drain once `after` losses have come.
struct StopAfter final : SegmentObserver {
  StopAfter(int64_t after, std::atomic<bool>& stop) : after(after), stop(stop) {}
  void on_loss(int64_t microbatch, double loss) override {
    recorder.on_loss(microbatch, loss);
    if (static_cast<int64_t>(recorder.losses.size()) >= after) stop = true;
  }
  void on_update(int stage, int64_t update, const std::vector<double>& squared) override {
    recorder.on_update(stage, update, squared);
  }
  int64_t after;
  std::atomic<bool>& stop;
  Recorder recorder;
};

// Runs `updates` updates from `first_update` on; returns the report.
inline SegmentReport run_segment(Pipeline& pipeline, Executor& executor, int64_t first_update, int64_t updates,
                                 SegmentObserver& observer, const std::atomic<bool>* stop = nullptr) {
  const SyntheticBatches batches = tiny_batches();
  Segment segment;
  segment.schedule = &pipeline.schedule();
  segment.batches = &batches;
  segment.first_update = first_update;
  segment.first_microbatch = first_update * pipeline.schedule().window;
  segment.microbatches = updates * pipeline.schedule().window;
  if (stop != nullptr) segment.wants_drain = [stop] { return stop->load(); };
  return executor.run(pipeline, segment, observer);
}
inline SegmentReport run_segment(Pipeline& pipeline, const Experiment& e, int64_t first_update, int64_t updates,
                                 SegmentObserver& observer, const std::atomic<bool>* stop = nullptr,
                                 const WrapTransport& wrap = {}) {
  return run_segment(pipeline, *make_executor(e.executor, wrap), first_update, updates, observer, stop);
}

// Evaluates `microbatches` microbatches, forward only; returns the report.
inline SegmentReport run_evaluation(Pipeline& pipeline, const std::string& executor, int64_t microbatches,
                                    SegmentObserver& observer) {
  const SyntheticBatches batches = tiny_batches();
  const Schedule forward_only = build_forward_only(pipeline.schedule());
  Segment segment;
  segment.schedule = &forward_only;
  segment.batches = &batches;
  segment.microbatches = microbatches;
  return make_executor(executor)->run(pipeline, segment, observer);
}

struct Outcome {
  Recorder recorder;
  NamedTensors weights;
  SegmentReport report;
};

inline Outcome run_experiment(const Experiment& e, int64_t updates, const WrapTransport& wrap = {}) {
  Pipeline pipeline = make_pipeline(e);
  Outcome outcome;
  outcome.report = run_segment(pipeline, e, 0, updates, outcome.recorder, nullptr, wrap);
  for (const auto& [name, tensor] : pipeline.weights()) outcome.weights[name] = tensor.clone();
  return outcome;
}

// [stage]: the most buffers that an owner's weights had at once, as seen after each round of replay.
inline std::vector<size_t> peak_weight_buffers(const Experiment& e, int64_t updates) {
  struct Looking final : SegmentObserver {
    explicit Looking(const Pipeline& pipeline)
        : pipeline(pipeline), peaks(static_cast<size_t>(pipeline.schedule().stages)) {}
    void on_loss(int64_t, double) override {}
    void on_update(int, int64_t, const std::vector<double>&) override {}
    std::chrono::steady_clock::time_point next_look() const override { return {}; }
    void on_look(const std::vector<RankStatus>&) override {
      for (int stage = 0; stage < pipeline.schedule().stages; ++stage) {
        for (int shard = 0; shard < pipeline.schedule().shards(); ++shard) {
          peaks[stage] = std::max(peaks[stage], pipeline.owner(stage, shard).weights.live_buffers());
        }
      }
    }
    const Pipeline& pipeline;
    std::vector<size_t> peaks;
  };
  Pipeline pipeline = make_pipeline(e);
  Looking observer(pipeline);
  run_segment(pipeline, *make_replay_executor(), 0, updates, observer);
  return observer.peaks;
}

inline bool same_bits(const NamedTensors& a, const NamedTensors& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, tensor] : a) {
    if (b.count(name) == 0 || !tensor.equal(b.at(name))) return false;
  }
  return true;
}

inline void expect_same(const Outcome& a, const Outcome& b, const std::string& what) {
  EXPECT_EQ(a.recorder.losses, b.recorder.losses) << what;
  EXPECT_EQ(a.recorder.norms, b.recorder.norms) << what;
  EXPECT_TRUE(same_bits(a.weights, b.weights)) << what;
  EXPECT_EQ(a.report.delay, b.report.delay) << what;
  EXPECT_EQ(a.report.mismatch, b.report.mismatch) << what;
}

}  // namespace gyre::testing_support
