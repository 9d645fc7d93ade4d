// Gradients that are not finite: the update is skipped and counted, the run goes on as if the weights had stood still
// for one version, and too many in a row end it with one line.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "fixture.h"
#include "gyre/core/error.h"
#include "gyre/runtime/reports.h"

namespace gyre {
namespace {

using namespace testing_support;

// A layer whose weight gradients are poisoned for some microbatches.
class Poisoned final : public Layer {
 public:
  Poisoned(std::shared_ptr<const Layer> layer, std::set<int64_t> microbatches)
      : layer_(std::move(layer)), microbatches_(std::move(microbatches)) {}
  const std::string& name() const override { return layer_->name(); }
  const std::string& prefix() const override { return layer_->prefix(); }
  std::vector<ParameterSpec> parameters() const override { return layer_->parameters(); }
  at::Tensor forward(const WeightView& weights, const at::Tensor& input, const LayerContext& context,
                     Saved& saved) const override {
    Kept kept{{}, context.microbatch};
    at::Tensor output = layer_->forward(weights, input, context, kept.layer);
    saved.keep(std::move(kept));
    return output;
  }
  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad_output, Saved& saved) const override {
    return layer_->backward_input(weights, grad_output, saved.get<Kept>().layer);
  }
  void backward_weights(Saved& saved, const GradientSums& gradients) const override {
    Kept& kept = saved.get<Kept>();
    layer_->backward_weights(kept.layer, gradients);
    if (microbatches_.count(kept.microbatch) > 0)
      gradients.sum(0).view(-1)[0] = std::numeric_limits<float>::quiet_NaN();
  }
  double cost(int64_t tokens) const override { return layer_->cost(tokens); }

 private:
  struct Kept {
    Saved layer;
    int64_t microbatch;
    auto members() const { return std::tie(layer, microbatch); }
  };

  std::shared_ptr<const Layer> layer_;
  std::set<int64_t> microbatches_;
};

Pipeline poisoned_pipeline(const Experiment& e, const std::set<int64_t>& microbatches, int64_t max_skipped,
                           bool at_the_head = false) {
  Layers layers = build_gpt(tiny_gpt());
  auto& poisoned = at_the_head ? layers.back() : layers[1];
  poisoned = std::make_shared<Poisoned>(poisoned, microbatches);
  std::vector<double> costs;
  for (const auto& layer : layers) costs.push_back(layer->cost(32));
  RuntimeOptions options;
  options.compute = at::kFloat;
  options.clip = 1;
  options.max_skipped = max_skipped;
  options.learning_rate = [](int64_t) { return 1e-3; };
  OptimizerConfig optimizer;
  optimizer.kind = "basis-rotation";
  optimizer.own = BasisRotationSettings{.interval = 4};
  Schedule schedule = make_schedule(
      {.name = e.schedule, .stages = e.stages, .window = e.window, .replicas = e.replicas, .clip_scope = e.clip_scope});
  return Pipeline(std::move(schedule), layers, partition_by_cost(costs, e.stages), options, optimizer);
}

TEST(NonFinite, UpdatesAreLeftOutAndCounted) {
  for (const std::string schedule : {"pipedream", "1f1b"}) {
    for (const char* executor : {"replay", "threads"}) {
      Experiment e;
      e.schedule = schedule;
      e.executor = executor;
      e.stages = 3;
      e.window = schedule == "1f1b" ? 3 : 1;
      e.clip_scope = schedule == "1f1b" ? ClipScope::Global : ClipScope::Stage;
      Pipeline pipeline = poisoned_pipeline(e, {10 * e.window, 11 * e.window}, 2);
      Recorder recorder;
      const SegmentReport report = run_segment(pipeline, e, 0, 30, recorder);
      int64_t skipped = 0;
      for (const int64_t count : report.skipped) skipped += count;
      // With a global norm no stage knows by what to scale its gradient; otherwise only the poisoned stage stands
      // still.
      EXPECT_EQ(skipped, schedule == "1f1b" ? 2 * 3 : 2) << schedule << " " << executor;
      for (const auto& [name, tensor] : pipeline.weights()) EXPECT_TRUE(tensor.isfinite().all().item<bool>()) << name;
      for (const auto& [name, tensor] : pipeline.optimizer_state()) {
        EXPECT_TRUE(tensor.isfinite().all().item<bool>()) << name;
      }
      EXPECT_LT(recorder.losses.rbegin()->second, recorder.losses.at(0));
    }
  }
}

// A shard's own gradients may be finite although those of its stage are not.
TEST(NonFinite, NoShardOfAStageIsUpdatedWithoutTheOthers) {
  Experiment e = experiment("pipedream", 3, 1);
  e.replicas = 2;
  e.executor = "threads";
  Pipeline pipeline = poisoned_pipeline(e, {6}, 2);  // in the fourth update
  Recorder recorder;
  run_segment(pipeline, e, 0, 3, recorder);
  NamedTensors before;
  for (const auto& [name, tensor] : pipeline.weights()) before[name] = tensor.clone();
  const SegmentReport report = run_segment(pipeline, e, 3, 1, recorder);
  for (int stage = 0; stage < 3; ++stage) {
    const bool poisoned = report.skipped[stage] == 1;
    for (int shard = 0; shard < 2; ++shard) {
      const StageOwner& owner = pipeline.owner(stage, shard);
      ASSERT_FALSE(owner.weights.specs().empty());
      for (size_t i = 0; i < owner.weights.specs().size(); ++i) {
        const std::string& name = owner.weights.specs()[i].name;
        EXPECT_EQ(owner.weights.masters()[i].equal(before.at(name)), poisoned) << name;
      }
    }
  }
  EXPECT_EQ(report.skipped[0] + report.skipped[1] + report.skipped[2], 1);
}

TEST(NonFinite, TooManyInARowEndTheRun) {
  Experiment e;
  e.stages = 3;
  Pipeline pipeline = poisoned_pipeline(e, {5, 7, 8, 9}, 2);
  Recorder recorder;
  try {
    run_segment(pipeline, e, 0, 30, recorder);
    FAIL() << "it went on";
  } catch (const Divergence& divergence) {
    EXPECT_THAT(divergence.what(), ::testing::HasSubstr("update 10 of stage"));
    EXPECT_THAT(divergence.what(), ::testing::HasSubstr("is not finite, 3 times in a row; lower [optimizer] lr"));
  }
}

// Keeps what is reported of a divergence too.
struct DivergenceRecorder final : SegmentObserver {
  void on_loss(int64_t microbatch, double loss) override { recorder.on_loss(microbatch, loss); }
  void on_update(int stage, int64_t update, const std::vector<double>& squared) override {
    recorder.on_update(stage, update, squared);
  }
  void on_divergence(int64_t count) override { skipped = count; }
  // Updates of which everything was passed on.
  std::vector<int64_t> whole_updates(int stages) const {
    std::vector<int64_t> whole;
    for (const auto& [microbatch, loss] : recorder.losses) {
      bool is_whole = true;
      for (int stage = 0; stage < stages; ++stage) is_whole &= recorder.norms.count({microbatch + 1, stage}) == 1;
      if (is_whole) whole.push_back(microbatch + 1);
    }
    return whole;
  }
  Recorder recorder;
  std::optional<int64_t> skipped;
};

// All updates before the one that ends the run, whether the stage that fails is the first to make it or the last.
TEST(NonFinite, WhatIsPassedOnDoesNotDependOnWhoIsHeardFirst) {
  for (const char* executor : {"replay", "threads"}) {
    for (const bool at_the_head : {false, true}) {
      SCOPED_TRACE(fmt::format("{}, {}", executor, at_the_head));
      Experiment e = experiment("pipedream", 4, 1);
      e.executor = executor;
      Pipeline pipeline = poisoned_pipeline(e, {3, 6, 7}, 1, at_the_head);
      DivergenceRecorder observer;
      EXPECT_THROW(run_segment(pipeline, e, 0, 40, observer), Divergence);
      EXPECT_EQ(observer.whole_updates(4), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7}));
      EXPECT_EQ(observer.skipped, 3);
    }
  }
}

// Of three stages; the last has a weight that is not finite.
Pipeline pipeline_with_bad_head(const Experiment& e) {
  Pipeline pipeline = make_pipeline(e);
  WeightStore& weights = pipeline.owner(2).weights;
  weights.restart(0, [&](size_t i) {
    return i == 0 ? at::full_like(weights.master(0), std::numeric_limits<float>::quiet_NaN()) : weights.master(i);
  });
  return pipeline;
}

// Whichever worker the conductor hears first, it reports the loss, and not a gradient that the loss spoiled.
TEST(NonFinite, ALossEndsTheRunByItsOwnName) {
  for (const char* executor : {"replay", "threads"}) {
    Experiment e;
    e.executor = executor;
    e.stages = 3;
    Pipeline pipeline = pipeline_with_bad_head(e);
    Recorder recorder;
    try {
      run_segment(pipeline, e, 0, 30, recorder);
      FAIL() << "it went on";
    } catch (const Divergence& divergence) {
      EXPECT_THAT(divergence.what(), ::testing::HasSubstr("the loss of microbatch 0 is")) << executor;
    }
    EXPECT_TRUE(recorder.losses.empty()) << "a loss that is none is nobody's to record";
  }
}

// Sends each loss only when the worker reports the next one.
class LateLosses final : public Transport {
 public:
  explicit LateLosses(Transport& below) : below_(below) {}
  std::unique_ptr<Sender> sender(const LinkId& id, const LinkEnds& ends) override {
    auto below = below_.sender(id, ends);
    if (id.kind != LinkKind::Report) return below;
    return std::make_unique<LateSender>(std::move(below));
  }
  std::unique_ptr<Receiver> receiver(const LinkId& id, const LinkEnds& ends) override {
    return below_.receiver(id, ends);
  }

 private:
  struct LateSender final : Sender {
    explicit LateSender(std::unique_ptr<Sender> below) : below(std::move(below)) {}
    bool has_room() const override { return below->has_room(); }
    void send(Message message) override {
      if (!std::holds_alternative<LossReport>(to_report(message))) return below->send(std::move(message));
      if (const auto late = std::exchange(last_loss, std::move(message))) below->send(*late);
    }
    std::unique_ptr<Sender> below;
    std::optional<Message> last_loss;
  };
  Transport& below_;
};

// A device has done a gradient's update before another has told the loss.
TEST(NonFinite, ALossThatComesAfterTheGradientsItSpoilsIsStillTheOneTold) {
  Experiment e;
  e.stages = 3;
  Pipeline pipeline = pipeline_with_bad_head(e);
  Recorder recorder;
  try {
    run_segment(pipeline, e, 0, 30, recorder, nullptr,
                [](Transport& below, const Doorbells&) { return std::make_unique<LateLosses>(below); });
    FAIL() << "it went on";
  } catch (const Divergence& divergence) {
    EXPECT_THAT(divergence.what(), ::testing::HasSubstr("the loss of microbatch 0 is"));
  }
}

TEST(NonFinite, ALossOfAnEvaluationIsToldAsSuch) {
  Experiment e;
  e.stages = 3;
  Pipeline pipeline = make_pipeline(e);
  WeightStore& weights = pipeline.owner(2).weights;
  weights.restart(0,
                  [&](size_t i) { return at::full_like(weights.master(i), -std::numeric_limits<float>::quiet_NaN()); });
  Recorder recorder;
  try {
    run_evaluation(pipeline, "replay", 2, recorder);
    FAIL() << "it went on";
  } catch (const Divergence& divergence) {
    EXPECT_THAT(divergence.what(), ::testing::StartsWith("the validation loss of microbatch 0 is nan; "));
  }
}

}  // namespace
}  // namespace gyre
