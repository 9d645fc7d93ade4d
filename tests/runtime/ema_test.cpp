// Averages of weights in a pipeline: each owner's mean over its versions, evaluated in place of the weights. Training
// is the same without them.
#include <gtest/gtest.h>

#include <cmath>

#include "copying_transport.h"
#include "fixture.h"
#include "gyre/runtime/evaluate.h"

namespace gyre {
namespace {

using namespace testing_support;

std::vector<Experiment> all_kinds() {
  std::vector<Experiment> all = every_kind();
  for (const char* plain : {"gpipe", "1f1b", "pipedream"}) all.push_back(experiment(plain, 4, 2));
  for (const Experiment& replicated :
       {experiment("pipedream", 3, 2), experiment("amdp", 4, 4), experiment("1f1b", 3, 2)}) {
    all.push_back(replicated);
    all.back().replicas = 2;
  }
  all.push_back(experiment("pipedream", 4, 1));
  all.back().tie = true;
  return all;
}

NamedTensors averages_of(const Pipeline& pipeline) {
  NamedTensors averages;
  for (const auto& [name, tensor] : pipeline.optimizer_state()) {
    if (name.ends_with("/ema")) averages[name.substr(0, name.size() - 4)] = tensor.clone();
  }
  return averages;
}

double loss_in(Pipeline& pipeline, ModelWeights weights, const WrapTransport& wrap = {}) {
  return evaluate(pipeline, *make_executor("replay", wrap), tiny_batches(), 3, pipeline.owner(0).weights.version(),
                  weights);
}

// A drain changes no version, so a run of k updates ends with version k of a longer one.
TEST(Ema, IsTheMeanOfTheVersionsUnderEverySchedule) {
  constexpr int64_t kUpdates = 5;
  for (Experiment e : all_kinds()) {
    NamedTensors sums;
    double weights = 0;
    for (int64_t updates = 0; updates <= kUpdates; ++updates) {
      weights = 1 + 0.8 * weights;
      for (const auto& [name, value] : run_experiment(e, updates).weights) {
        at::Tensor& sum = sums[name];
        sum = value.to(at::kDouble) + (sum.defined() ? 0.8 * sum : at::zeros({}, at::kDouble));
      }
    }
    e.ema_decay = 0.8;
    Pipeline pipeline = make_pipeline(e);
    Recorder recorder;
    run_segment(pipeline, e, 0, kUpdates, recorder);
    const NamedTensors averages = averages_of(pipeline);
    EXPECT_EQ(averages.size(), pipeline.weights().size()) << name_of(e);
    for (const auto& [name, value] : averages) {
      EXPECT_LT((value - sums.at(name) / weights).abs().max().item<double>(), 2e-6) << name_of(e) << ", " << name;
    }
  }
}

TEST(Ema, ChangesNothingOfTheTraining) {
  for (Experiment e : all_kinds()) {
    const Outcome without = run_experiment(e, 6);
    e.ema_decay = 0.9;
    expect_same(without, run_experiment(e, 6), name_of(e));
    e.executor = "threads";
    expect_same(without, run_experiment(e, 6, copying), name_of(e) + ", threads, copied");
  }
}

// The loss equals, to the bit, that of a pipeline whose weights are the averages; the run goes on with its own weights.
TEST(Ema, IsEvaluatedInTheWeightsPlace) {
  for (Experiment e : all_kinds()) {
    for (const at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
      e.compute = compute;
      e.ema_decay = 0.9;
      Pipeline pipeline = make_pipeline(e), averaged = make_pipeline(e), undisturbed = make_pipeline(e);
      Recorder recorder, expected;
      run_segment(pipeline, e, 0, 4, recorder);
      run_segment(undisturbed, e, 0, 4, expected);
      averaged.restore(averages_of(pipeline), {}, 0);
      const double own = loss_in(pipeline, ModelWeights::Trained), ema = loss_in(pipeline, ModelWeights::Ema);
      EXPECT_NE(own, ema) << name_of(e);
      EXPECT_EQ(ema, loss_in(averaged, ModelWeights::Trained)) << name_of(e);
      EXPECT_EQ(ema, loss_in(pipeline, ModelWeights::Ema, copying)) << name_of(e);
      EXPECT_EQ(own, loss_in(pipeline, ModelWeights::Trained)) << name_of(e);
      run_segment(pipeline, e, 4, 3, recorder);
      run_segment(undisturbed, e, 4, 3, expected);
      EXPECT_EQ(recorder.losses, expected.losses) << name_of(e);
      EXPECT_TRUE(same_bits(pipeline.weights(), undisturbed.weights())) << name_of(e);
      EXPECT_TRUE(same_bits(averages_of(pipeline), averages_of(undisturbed))) << name_of(e);
    }
  }
}

}  // namespace
}  // namespace gyre
