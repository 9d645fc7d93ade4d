// A tied model: one weight that the first and the last stage read, under every schedule, executor and partition.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "copying_transport.h"
#include "fixture.h"
#include "gyre/runtime/evaluate.h"
#include "gyre/schedule/delay.h"

namespace gyre {
namespace {

using namespace testing_support;

constexpr const char* kTable = "embedding.token.weight";

// Both stages' gradients are summed in the same way wherever the stages are.
TEST(Tied, FlushingSchedulesEqualOneStage) {
  std::vector<Experiment> all = {
      experiment("1f1b", 4, 4),  experiment("gpipe", 3, 5), experiment("interleaved-1f1b", 4, 4),
      experiment("zb-h1", 4, 4), experiment("zb-v", 4, 5),  experiment("dualpipe-v", 6, 6)};
  for (Experiment& e : all) {
    for (const at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
      Experiment one = experiment("gpipe", 1, e.window);
      for (Experiment* each : {&e, &one}) {
        each->tie = true;
        each->compute = compute;
        each->clip_scope = ClipScope::Global;
      }
      e.executor = "threads";
      const Outcome expected = run_experiment(one, 8);
      const Outcome found = run_experiment(e, 8);
      EXPECT_EQ(expected.recorder.losses, found.recorder.losses) << name_of(e);
      EXPECT_TRUE(same_bits(expected.weights, found.weights)) << name_of(e);
      EXPECT_EQ(found.weights.count("head.output.weight"), 0u);
      EXPECT_EQ(found.weights.count(kTable), 1u);
    }
  }
}

TEST(Tied, ThreadsEqualReplayUnderEverySchedule) {
  std::vector<Experiment> all = every_kind();
  all.push_back(experiment("pipedream", 5, 1));
  all.push_back(experiment("pipedream", 4, 3));
  all.push_back(experiment("pipedream", 1, 1));
  for (const Experiment& e : every_kind_replicated(2)) all.push_back(e);
  for (Experiment& e : all) {
    e.tie = true;
    e.compute = at::kBFloat16;
    const int64_t updates = 6, microbatches = updates * e.window * e.replicas;
    for (const WeightPolicy weights : {WeightPolicy::Stash, WeightPolicy::Latest}) {
      e.weights = weights;
      e.executor = "replay";
      const Outcome replay = run_experiment(e, updates);
      ASSERT_EQ(replay.recorder.losses.size(), static_cast<size_t>(microbatches)) << name_of(e);
      EXPECT_EQ(replay.report.delay, analyse_delays(make_pipeline(e).schedule(), microbatches).delay) << name_of(e);
      e.executor = "threads";
      expect_same(replay, run_experiment(e, updates), name_of(e));
    }
  }
}

// The bits depend neither on who owns which shard nor on whether messages are lent or copied.
TEST(Tied, ShardsAndCopiedMessagesChangeNoBit) {
  Experiment e = experiment("pipedream", 4, 2);
  e.tie = true;
  e.replicas = 2;
  const Outcome sharded = run_experiment(e, 6);
  e.shard_optimizer = false;
  const Outcome whole = run_experiment(e, 6);
  EXPECT_EQ(sharded.recorder.losses, whole.recorder.losses);
  EXPECT_TRUE(same_bits(sharded.weights, whole.weights));
  expect_same(whole, run_experiment(e, 6, copying), "copied");
}

TEST(Tied, EvaluationReadsTheTable) {
  Experiment e = experiment("pipedream", 4, 1);
  e.tie = true;
  Pipeline pipeline = make_pipeline(e);
  Experiment one = e;
  one.stages = 1;
  Pipeline whole = make_pipeline(one);
  const SyntheticBatches batches = tiny_batches();
  const auto loss = [&](Pipeline& of) { return evaluate(of, *make_executor("threads"), batches, 4, 0); };
  EXPECT_EQ(loss(pipeline), loss(whole));
  NamedTensors weights;
  for (const auto& [name, tensor] : pipeline.weights()) weights[name] = tensor.clone();
  weights.at(kTable).mul_(2);
  const double before = loss(pipeline);
  pipeline.restore(weights, {}, 0);
  EXPECT_NE(loss(pipeline), before);
}

// A drain at the end of a window leaves nothing behind.
TEST(Tied, ContinuesWhereItWasCut) {
  Experiment e = experiment("pipedream", 4, 2);
  e.tie = true;
  for (const char* executor : {"replay", "threads"}) {
    e.executor = executor;
    Pipeline whole = make_pipeline(e);
    Recorder first, second, resumed;
    run_segment(whole, e, 0, 5, first);
    NamedTensors weights, state;
    for (const auto& [name, tensor] : whole.weights()) weights[name] = tensor.clone();
    for (const auto& [name, tensor] : whole.optimizer_state()) state[name] = tensor.clone();
    run_segment(whole, e, 5, 5, second);
    Pipeline fresh = make_pipeline(e);
    fresh.restore(weights, state, 5);
    run_segment(fresh, e, 5, 5, resumed);
    EXPECT_EQ(second.losses, resumed.losses) << executor;
    EXPECT_TRUE(same_bits(whole.weights(), fresh.weights())) << executor;
  }
}

}  // namespace
}  // namespace gyre
