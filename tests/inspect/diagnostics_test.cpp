// gyre diagnose: the training that it emulates is the run's own.
#include "gyre/inspect/diagnostics.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gyre/build/batches.h"
#include "gyre/build/build.h"
#include "gyre/data/dataset.h"
#include "gyre/data/prepare.h"
#include "gyre/optim/settings/basis_rotation_settings.h"
#include "gyre/optim/settings/delay_compensated_settings.h"
#include "gyre/runtime/executor.h"
#include "gyre/tensors/host_memory.h"
#include "gyre/tensors/matrix_block.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

class DiagnosticsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream text(directory_ / "text.txt");
    for (int i = 0; i < 400; ++i) text << "line " << i * 7919 % 1000 << " of so many\n";
    text.close();
    PrepareOptions options;
    options.texts = {(directory_ / "text.txt").string()};
    options.out = directory_ / "tokens";
    prepare(options);
  }

  Config config(const std::string& clip_scope) const {
    Config config;
    config.data.tokens = (directory_ / "tokens").string();
    config.model.layers = 2;
    config.model.width = 16;
    config.model.heads = 2;
    config.model.context = 16;
    config.pipeline.schedule = "1f1b";  // no delay: what is emulated is what training does
    config.pipeline.stages = 3;
    config.pipeline.microbatch = 2;
    config.pipeline.accumulate = 2;
    config.pipeline.executor = "replay";
    config.optimizer.kind = "adamw";
    config.optimizer.epsilon = 0.1;  // so that a gradient's length counts
    config.optimizer.clip = 0.01;
    config.optimizer.clip_scope = clip_scope;
    config.run.precision = "fp32";
    Config resolved = config;
    resolve_vocabulary(resolved, Dataset::open(config.data));
    return resolved;
  }

  const testing_support::TemporaryDirectory directory_;
};

// 1 - |sum of updates| / sum of |update| of every stage, from the run itself.
std::vector<double> oscillations(const Config& config, int64_t updates) {
  const c10::NoGradGuard no_grad;
  const auto pipeline = build_pipeline(config);
  const Dataset dataset = Dataset::open(config.data);
  const auto batches = train_batches(config, dataset).source;
  const auto weights = [&](int stage) {
    std::vector<at::Tensor> flat;
    for (const at::Tensor& master : pipeline->owner(stage).weights.masters()) flat.push_back(master.flatten());
    return at::cat(flat).to(at::kDouble);
  };
  const int stages = static_cast<int>(config.pipeline.stages);
  std::vector<at::Tensor> start, last;
  for (int stage = 0; stage < stages; ++stage) start.push_back(weights(stage));
  last = start;
  std::vector<double> lengths(stages);
  struct : SegmentObserver {
    void on_loss(int64_t, double) override {}
    void on_update(int, int64_t, const std::vector<double>&) override {}
  } nobody;
  for (int64_t update = 0; update < updates; ++update) {
    Segment segment;
    segment.schedule = &pipeline->schedule();
    segment.batches = batches.get();
    segment.first_update = update;
    segment.first_microbatch = update * config.pipeline.accumulate;
    segment.microbatches = config.pipeline.accumulate;
    make_executor("replay")->run(*pipeline, segment, nobody);
    for (int stage = 0; stage < stages; ++stage) {
      const at::Tensor now = weights(stage);
      lengths[stage] += (now - last[stage]).norm().item<double>();
      last[stage] = now;
    }
  }
  std::vector<double> result;
  for (int stage = 0; stage < stages; ++stage) {
    result.push_back(1 - (last[stage] - start[stage]).norm().item<double>() / lengths[stage]);
  }
  return result;
}

TEST_F(DiagnosticsTest, ClipsAsTheRunDoes) {
  for (const char* scope : {"global", "stage", "none"}) {
    TrainedModel model;
    model.config = config(scope);
    model.data = Dataset::open(model.config.data).identity();
    model.checkpoint.weights = build_pipeline(model.config)->weights();
    DiagnosticsOptions options;
    options.draws = 0;
    options.updates = 8;
    const Diagnostics found = diagnose(model, options);
    const std::vector<double> expected = oscillations(model.config, options.updates);
    for (size_t stage = 0; stage < expected.size(); ++stage) {
      EXPECT_NEAR(*found.stages[stage].oscillation, expected[stage], 1e-4) << scope << ", stage " << stage;
      EXPECT_NEAR(*found.stages[stage].cosine, 1, 1e-4) << scope << ", stage " << stage;
    }
  }
}

TEST_F(DiagnosticsTest, TellsHowMuchIsDone) {
  TrainedModel model;
  model.config = config("none");
  model.data = Dataset::open(model.config.data).identity();
  model.checkpoint.weights = build_pipeline(model.config)->weights();
  DiagnosticsOptions options;
  options.draws = 15;
  options.microbatches = 1;
  options.updates = 2;
  std::map<std::string, std::vector<int64_t>> told;
  options.progress = [&](int64_t done, int64_t all, const char* thing) {
    EXPECT_LE(done, all) << thing;
    told[thing].push_back(done);
    if (done == all) told[thing].push_back(0);
  };
  const Diagnostics found = diagnose(model, options);
  int64_t filling = 0;
  for (const StageDiagnostics& stage : found.stages) filling = std::max(filling, stage.delay);
  const auto up_to = [](int64_t all) {
    std::vector<int64_t> numbers;
    for (int64_t i = 1; i <= all; ++i) numbers.push_back(i);
    numbers.push_back(0);
    return numbers;
  };
  EXPECT_EQ(told["Hessian product"], up_to(30));
  EXPECT_EQ(told["late update"], up_to(filling + 2));
}

// A norm of 0 would be one that was measured.
TEST(Diagnostics, WhatWasLeftOutIsNull) {
  Diagnostics diagnostics;
  EXPECT_EQ(to_json(diagnostics),
            R"({"step":0,"parameters":0,"hessian_norm":null,"rotated_norm":null,"own_bases":null,"stages":[]})");
  diagnostics.hessian = {2.0, 1.5, true};
  EXPECT_EQ(to_json(diagnostics),
            R"({"step":0,"parameters":0,"hessian_norm":2.0,"rotated_norm":1.5,"own_bases":true,"stages":[]})");
}

TEST_F(DiagnosticsTest, UpdatesThatChangeNothingHaveNoDirection) {
  TrainedModel model;
  model.config = config("none");
  model.config.optimizer.floor = 0;
  model.data = Dataset::open(model.config.data).identity();
  const auto pipeline = build_pipeline(model.config);
  model.checkpoint.weights = pipeline->weights();
  model.checkpoint.optimizer = pipeline->optimizer_state();
  model.checkpoint.step = model.config.run.updates;  // where the learning rate is 0
  DiagnosticsOptions options;
  options.draws = 0;
  options.updates = 2;
  const Diagnostics found = diagnose(model, options);
  EXPECT_FALSE(found.hessian) << "no draws, no norm";
  EXPECT_FALSE(found.stages.front().cosine);
  EXPECT_FALSE(found.stages.front().oscillation);
  EXPECT_NE(to_json(found).find(R"("cosine":null,"oscillation":null)"), std::string::npos) << to_json(found);
}

// Adds up what an optimizer does to the weights, from one update on.
class UpdateSum final : public Optimizer {
 public:
  UpdateSum(std::unique_ptr<Optimizer> optimizer, int64_t from) : optimizer_(std::move(optimizer)), from_(from) {}
  void step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
            const UpdateContext& context) override {
    std::vector<at::Tensor> before;
    for (const at::Tensor& weight : weights) before.push_back(weight.clone());
    optimizer_->step(weights, gradients, context);
    if (context.update < from_) return;
    double squared = 0;
    sum_.resize(weights.size());
    for (size_t i = 0; i < weights.size(); ++i) {
      const at::Tensor change = weights[i] - before[i];
      squared += change.square().sum(at::kDouble).item<double>();
      sum_[i] = sum_[i].defined() ? sum_[i] + change : change;
    }
    lengths_ += std::sqrt(squared);
  }
  NamedTensors state() const override { return optimizer_->state(); }
  void load_state(const NamedTensors& state) override { optimizer_->load_state(state); }
  double oscillation() const {
    double squared = 0;
    for (const at::Tensor& tensor : sum_) squared += tensor.square().sum(at::kDouble).item<double>();
    return 1 - std::sqrt(squared) / lengths_;
  }

 private:
  std::unique_ptr<Optimizer> optimizer_;
  int64_t from_;
  std::vector<at::Tensor> sum_;
  double lengths_ = 0;
};

// The delays that a diagnosis puts in are those that the schedule has: an asynchronous run makes the same updates.
TEST_F(DiagnosticsTest, UpdatesAreAsLateAsTheRunsOwn) {
  for (const char* kind : {"adamw", "delay-compensated"}) {
    TrainedModel model;
    model.config = config("stage");
    model.data = Dataset::open(model.config.data).identity();
    model.config.pipeline.schedule = "pipedream";
    model.config.optimizer.kind = kind;
    model.config.optimizer.own.get<DelayCompensatedSettings>().lambda = 1e6;  // so that it counts
    model.config.pipeline.accumulate = 1;
    model.config.optimizer.clip = 1;
    model.config.model.dropout = 0.1;
    model.checkpoint.weights = build_pipeline(model.config)->weights();
    DiagnosticsOptions options;
    options.draws = 0;
    options.updates = 6;
    const Diagnostics found = diagnose(model, options);

    const auto pipeline = build_pipeline(model.config);
    const Dataset dataset = Dataset::open(model.config.data);
    const auto batches = train_batches(model.config, dataset).source;
    const int64_t filling = 2;  // of three stages
    std::vector<UpdateSum*> sums;
    for (int stage = 0; stage < 3; ++stage) {
      auto sum = std::make_unique<UpdateSum>(std::move(pipeline->owner(stage).optimizer), filling + 1);
      sums.push_back(sum.get());
      pipeline->owner(stage).optimizer = std::move(sum);
    }
    struct : SegmentObserver {
      void on_loss(int64_t, double) override {}
      void on_update(int, int64_t, const std::vector<double>&) override {}
    } nobody;
    Segment segment;
    segment.schedule = &pipeline->schedule();
    segment.batches = batches.get();
    segment.microbatches = filling + options.updates;
    make_executor("replay")->run(*pipeline, segment, nobody);
    for (int stage = 0; stage < 3; ++stage) {
      EXPECT_EQ(found.stages[stage].delay, filling - stage);
      EXPECT_DOUBLE_EQ(*found.stages[stage].oscillation, sums[stage]->oscillation()) << kind << ", stage " << stage;
    }
  }
}

// At so low a rate late gradients are current ones but for rounding, and so are the updates, whose weights are ahead.
TEST_F(DiagnosticsTest, UpdatesOfWeightsThatAreAheadAreCompared) {
  TrainedModel model;
  model.config = config("none");
  model.data = Dataset::open(model.config.data).identity();
  model.config.pipeline.schedule = "pipedream";
  model.config.pipeline.accumulate = 1;
  model.config.optimizer.kind = "basis-rotation";
  auto& rotation = model.config.optimizer.own.get<BasisRotationSettings>();
  rotation.look_ahead = 1;
  rotation.interval = 1;
  model.config.optimizer.lr = 1e-5;
  model.checkpoint.weights = build_pipeline(model.config)->weights();
  DiagnosticsOptions options;
  options.draws = 0;
  options.updates = 6;
  for (const StageDiagnostics& stage : diagnose(model, options).stages) EXPECT_GT(*stage.cosine, 0.99) << stage.delay;
}

// Covariances of long sides are most of what a run without bases of its own takes.
TEST_F(DiagnosticsTest, EstimatedBasesTakeThePlaceOfTheirCovariances) {
  TrainedModel model;
  model.config = config("none");
  model.config.model.layers = 12;
  model.config.model.width = 8;
  model.config.model.mlp_width = 512;
  model.data = Dataset::open(model.config.data).identity();
  double covariances = 0;
  {
    const auto pipeline = build_pipeline(model.config);
    model.checkpoint.weights = pipeline->weights();
    for (const ParameterSpec& spec : pipeline->parameters_here()) {
      for (const MatrixBlock& block : matrix_blocks(spec)) {
        covariances += 4 * static_cast<double>(block.rows * block.rows + block.columns * block.columns);
      }
    }
  }
  DiagnosticsOptions options;
  options.draws = 15;
  options.microbatches = 1;
  options.updates = 1;
  HostMemory memory(1);
  EXPECT_FALSE(diagnose(model, options).hessian.value().own_bases);
  EXPECT_LT(static_cast<double>(memory.bytes().peak), 1.8 * covariances);
}

}  // namespace
}  // namespace gyre
