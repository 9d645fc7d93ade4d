// Executed delay equals emulated delay to the bit, for every optimizer and weight policy: a pipeline is compared with
// one loop over microbatches that keeps old weights of each stage.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "fixture.h"
#include "gyre/optim/clipping.h"
#include "gyre/optim/config.h"
#include "gyre/runtime/weight_forecast.h"
#include "gyre/schedule/delay.h"

namespace gyre {
namespace {

using namespace testing_support;
using Tensors = std::vector<at::Tensor>;

Tensors copies(std::span<const at::Tensor> tensors) {
  Tensors result;
  for (const at::Tensor& tensor : tensors) result.push_back(tensor.clone());
  return result;
}

// One stage with all its past weights: versions_[v] are those after v updates. Forecasts are the runtime's: ATen's sums
// have the same bits only where the compiler fuses multiplications and additions.
class EmulatedStage {
 public:
  EmulatedStage(StageOwner& owner, WeightPolicy policy, int64_t delay, double discrepancy)
      : owner_(owner), policy_(policy), delay_(delay) {
    versions_.push_back(copies(owner.weights.masters()));
    for (const at::Tensor& weight : versions_[0]) mean_step_.push_back(at::zeros_like(weight));
    kept_ = delay > 0 ? std::pow(discrepancy, 1.0 / static_cast<double>(delay)) : 0;
  }

  const Tensors& version(int64_t t) const { return versions_[t]; }
  // What the forward of microbatch t reads: weights that are min(t, delay) updates old.
  Tensors read_forward(int64_t t) const {
    const int64_t v = std::max<int64_t>(0, t - delay_);
    Tensors weights = copies(versions_[v]);
    if (policy_ != WeightPolicy::Predict || v == 0 || delay_ == 0) return weights;
    for (size_t i = 0; i < weights.size(); ++i) {
      write_forecast(versions_[v][i], versions_[v][i] - versions_[v - 1][i], static_cast<double>(delay_), weights[i]);
    }
    return weights;
  }
  // What its backward reads, after t updates.
  Tensors read_backward(int64_t t) const {
    if (!reads_latest(policy_)) return read_forward(t);
    Tensors weights = copies(versions_[t]);
    if (policy_ != WeightPolicy::Corrected || delay_ == 0) return weights;
    for (size_t i = 0; i < weights.size(); ++i) {
      write_forecast(versions_[t][i], mean_step_[i], -static_cast<double>(delay_), weights[i]);
    }
    return weights;
  }

  // mean_delay: over all stages.
  void update(std::span<at::Tensor> gradients, double mean_delay, int64_t t, const RuntimeOptions& options) {
    const at::Tensor norms = squared_norms(gradients);
    clip(gradients, whole_norm({&norms, 1}).item<double>(), options.clip);
    UpdateContext context;
    context.mean_delay = {static_cast<double>(delay_), mean_delay};
    context.update = t + 1;
    context.delay = std::min(t, delay_);
    context.learning_rate = options.learning_rate(t + 1);
    Tensors next = copies(versions_[t]);
    owner_.optimizer->step(next, gradients, context);
    for (size_t i = 0; i < next.size(); ++i) {
      observe_step(mean_step_[i], versions_[t][i].clone(), next[i], kept_);
    }
    versions_.push_back(std::move(next));
  }

  const Stage& layers() const { return owner_.layers; }

 private:
  StageOwner& owner_;
  WeightPolicy policy_;
  int64_t delay_;
  double kept_ = 0;
  std::vector<Tensors> versions_;
  Tensors mean_step_;
};

// The delays of PipeDream, by stage.
std::vector<int64_t> delays_of(const Experiment& e) {
  std::vector<int64_t> delays;
  for (int k = 0; k < e.stages; ++k) delays.push_back(e.stages - 1 - k);
  return delays;
}

std::map<int64_t, double> emulate(const Experiment& e, int64_t microbatches, const std::vector<int64_t>& delays) {
  const double mean_delay = std::accumulate(delays.begin(), delays.end(), 0.0) / e.stages;
  Pipeline pipeline = make_pipeline(e);  // for layers, initial weights and optimizers
  std::vector<EmulatedStage> stages;
  for (int k = 0; k < e.stages; ++k) {
    stages.emplace_back(pipeline.owner(k), e.weights, delays[static_cast<size_t>(k)], pipeline.options().discrepancy);
  }
  const SyntheticBatches batches = tiny_batches();
  std::map<int64_t, double> losses;
  for (int64_t t = 0; t < microbatches; ++t) {
    const Batch batch = batches.batch(t);
    LayerContext context;
    context.seed = pipeline.options().seed;
    context.microbatch = t;
    context.targets = batch.targets;
    std::vector<StageSaved> saved(stages.size());
    // A tied weight is the first stage's, in the version that its forward reads.
    const at::Tensor table = stages[0].read_forward(t)[0];
    at::Tensor table_gradient = at::zeros_like(table);
    at::Tensor x = batch.inputs;
    for (size_t k = 0; k < stages.size(); ++k) {
      const Stage& layers = stages[k].layers();
      x = layers.forward(layers.with_tied(stages[k].read_forward(t), table), x, context, saved[k]);
    }
    losses[t] = x.item<double>();
    at::Tensor grad = at::scalar_tensor(1.0);
    for (size_t k = stages.size(); k-- > 0;) {
      FlatBuffer gradients = make_flat_buffer(stages[k].layers().parameters(), at::kFloat, at::kCPU);
      const Stage& layers = stages[k].layers();
      Tensors sums = layers.with_tied(gradients.tensors, table_gradient);
      grad = layers.backward(layers.with_tied(stages[k].read_backward(t), table), grad, saved[k], sums);
      if (k == 0 && e.tie) gradients.tensors[0].add_(table_gradient);
      stages[k].update(gradients.tensors, mean_delay, t, pipeline.options());
    }
  }
  return losses;
}

std::map<int64_t, double> emulate(const Experiment& e, int64_t microbatches) {
  return emulate(e, microbatches, delays_of(e));
}

TEST(Emulation, EqualsExecutionForEveryOptimizer) {
  for (const std::string& optimizer : optimizer_kinds().names()) {
    Experiment e;
    e.stages = 5;
    e.optimizer = optimizer;
    const auto executed = run_experiment(e, 30).recorder.losses;
    EXPECT_EQ(executed, emulate(e, 30)) << optimizer;
    EXPECT_NE(executed.at(29), executed.at(0));
  }
}

TEST(Emulation, EqualsExecutionOfStageAwareRefresh) {
  Experiment e;
  e.stages = 5;
  e.optimizer = "basis-rotation";
  e.interval = 4;
  const auto fixed = run_experiment(e, 30).recorder.losses;
  e.refresh = "stage-aware";
  const auto executed = run_experiment(e, 30).recorder.losses;
  EXPECT_EQ(executed, emulate(e, 30));
  EXPECT_NE(executed, fixed);
}

// Where all stages have the same delay, or none, stage-aware refresh is the fixed one.
TEST(Emulation, StageAwareRefreshTakesTheSchedulesDelays) {
  for (const char* schedule : {"pipedream-2bw", "1f1b"}) {
    Experiment e;
    e.schedule = schedule;
    e.window = 4;
    e.optimizer = "basis-rotation";
    e.interval = 3;
    const auto fixed = run_experiment(e, 16).recorder.losses;
    e.refresh = "stage-aware";
    EXPECT_EQ(run_experiment(e, 16).recorder.losses, fixed) << schedule;
  }
}

// Stage-aware refresh uses the delays of the schedule's analysis, under every schedule.
TEST(MeanDelays, OfEveryStageAreTheSchedules) {
  for (const char* schedule : {"pipedream", "pipedream-2bw", "paci", "amdp", "1f1b"}) {
    Experiment e;
    e.schedule = schedule;
    e.stages = 4;
    e.window = 16;
    Pipeline pipeline = make_pipeline(e);
    const std::vector<double> expected = mean_delays(pipeline.schedule());
    const double sum = std::accumulate(expected.begin(), expected.end(), 0.0);
    for (int stage = 0; stage < e.stages; ++stage) {
      const MeanDelays& found = pipeline.owner(stage).mean_delay;
      EXPECT_EQ(found.stage, expected[stage]) << schedule << ", stage " << stage;
      EXPECT_EQ(found.all_stages, sum / e.stages) << schedule;
    }
  }
}

TEST(Emulation, EqualsExecutionForEveryPolicy) {
  std::map<WeightPolicy, double> last;
  for (const WeightPolicy policy :
       {WeightPolicy::Stash, WeightPolicy::Latest, WeightPolicy::Predict, WeightPolicy::Corrected}) {
    for (const char* executor : {"replay", "threads"}) {
      Experiment e;
      e.stages = 5;
      e.weights = policy;
      e.executor = executor;
      const auto executed = run_experiment(e, 30).recorder.losses;
      EXPECT_EQ(executed, emulate(e, 30)) << to_string(policy) << " " << executor;
      last[policy] = executed.at(29);
    }
  }
  EXPECT_NE(last[WeightPolicy::Stash], last[WeightPolicy::Latest]);
  EXPECT_NE(last[WeightPolicy::Stash], last[WeightPolicy::Predict]);
  EXPECT_NE(last[WeightPolicy::Latest], last[WeightPolicy::Corrected]);
}

// The last stage reads the version of the tied weight that the first stage's forward of the microbatch read, in its
// backward too, and its gradient joins the first stage's.
TEST(Emulation, EqualsExecutionOfATiedModel) {
  for (const WeightPolicy policy :
       {WeightPolicy::Stash, WeightPolicy::Latest, WeightPolicy::Predict, WeightPolicy::Corrected}) {
    for (const char* executor : {"replay", "threads"}) {
      Experiment e;
      e.stages = 5;
      e.weights = policy;
      e.executor = executor;
      const double untied = run_experiment(e, 30).recorder.losses.at(29);
      e.tie = true;
      const auto executed = run_experiment(e, 30).recorder.losses;
      EXPECT_EQ(executed, emulate(e, 30)) << to_string(policy) << " " << executor;
      EXPECT_NE(executed.at(29), untied);
    }
  }
}

// The last stage holds two microbatches, of which the older reads an older version of the tied weight: each backward
// reads what its own forward read.
TEST(Emulation, EqualsExecutionOfATiedModelWhoseLastStageRunsAhead) {
  const auto a = [](const char* text) { return parse_action(text, 1); };
  Schedule schedule = make_schedule({"pipedream", 2, 1});
  schedule.programs[0] = {{a("0F0")}, {a("0F1"), a("0B0"), a("0U0")}};
  schedule.programs[1] = {{a("1F0")}, {a("1F1"), a("1B0"), a("1U0")}};
  for (const char* executor : {"replay", "threads"}) {
    Experiment e;
    e.stages = 2;
    e.own_schedule = schedule;
    e.executor = executor;
    e.tie = true;
    EXPECT_EQ(run_experiment(e, 30).recorder.losses, emulate(e, 30, {1, 1})) << executor;
  }
}

// Windows of two microbatches: the first one's backward comes after an update that its forward did not know, the
// second one's reads what its forward read.
TEST(Emulation, CorrectsTheWeightsOfThoseBackwardsAloneThatMissedAnUpdate) {
  const auto a = [](const char* text) { return parse_action(text, 1); };
  constexpr int64_t kWindows = 15;
  Experiment e;
  e.stages = 1;
  e.window = 2;
  e.weights = WeightPolicy::Corrected;
  e.own_schedule = make_schedule({"pipedream", 1, 2});
  e.own_schedule->programs[0] = {{a("0F0")}, {a("0B0"), a("0F1"), a("0B1"), a("0F2"), a("0U0")}};
  Pipeline pipeline = make_pipeline(e);
  EmulatedStage stage(pipeline.owner(0), e.weights, 1, pipeline.options().discrepancy);
  const SyntheticBatches batches = tiny_batches();
  std::map<int64_t, double> losses;
  for (int64_t t = 0; t < kWindows; ++t) {
    FlatBuffer gradients = make_flat_buffer(stage.layers().parameters(), at::kFloat, at::kCPU);
    for (const int64_t microbatch : {2 * t, 2 * t + 1}) {
      const Batch batch = batches.batch(microbatch);
      LayerContext context;
      context.seed = pipeline.options().seed;
      context.microbatch = microbatch;
      context.targets = batch.targets;
      context.loss_in_backward = true;  // by the weights that the backward reads
      StageSaved saved;
      const bool missed = microbatch % 2 == 0 && t > 0;
      const Tensors forward = missed ? stage.read_forward(t) : stage.version(t);
      const at::Tensor loss = stage.layers().forward(forward, batch.inputs, context, saved);
      const Tensors backward = missed ? stage.read_backward(t) : stage.version(t);
      stage.layers().backward(backward, at::scalar_tensor(0.5), saved, gradients.tensors);
      losses[microbatch] = loss.item<double>();
    }
    stage.update(gradients.tensors, 1, t, pipeline.options());
  }
  for (const char* executor : {"replay", "threads"}) {
    e.executor = executor;
    EXPECT_EQ(run_experiment(e, kWindows).recorder.losses, losses) << executor;
  }
}

// A forecast holds only for a filled pipeline: an evaluation, a checkpoint or a resumed run starts anew, and masters
// are never forecasts.
TEST(Forecast, SegmentsBeginWithTheWeightsAsTheyAre) {
  for (const WeightPolicy policy : {WeightPolicy::Predict, WeightPolicy::Corrected}) {
    for (const at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
      Experiment e;
      e.weights = policy;
      e.compute = compute;
      Pipeline whole = make_pipeline(e);
      Recorder first, second, resumed;
      run_segment(whole, e, 0, 12, first);
      NamedTensors weights, state;
      for (const auto& [name, tensor] : whole.weights()) weights[name] = tensor.clone();
      for (const auto& [name, tensor] : whole.optimizer_state()) state[name] = tensor.clone();
      run_segment(whole, e, 12, 12, second);
      Pipeline fresh = make_pipeline(e);
      fresh.restore(weights, state, 12);
      run_segment(fresh, e, 12, 12, resumed);
      EXPECT_EQ(second.losses, resumed.losses) << to_string(policy);
      EXPECT_TRUE(same_bits(whole.weights(), fresh.weights()));
    }
  }
}

}  // namespace
}  // namespace gyre
