// Optimizers sharded over the replicas of a stage (ZeRO stage 1): who holds what, and that the bits do not depend on
// it.
#include "gyre/runtime/shards.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "fixture.h"

namespace gyre {
namespace {

using namespace testing_support;

std::vector<ParameterSpec> parameters_of(const std::vector<int64_t>& sizes) {
  std::vector<ParameterSpec> specs;
  for (const int64_t size : sizes) {
    ParameterSpec spec;
    spec.name = std::to_string(specs.size());
    spec.shape = {size};
    specs.push_back(spec);
  }
  return specs;
}

int64_t largest(const std::vector<Shard>& shards) {
  int64_t most = 0;
  for (const Shard& shard : shards) most = std::max(most, shard.elements);
  return most;
}

// The smallest largest part of any cut, found by trying all cuts.
int64_t best_cut(const std::vector<int64_t>& sizes, size_t begin, int parts) {
  int64_t sum = 0;
  for (size_t i = begin; i < sizes.size(); ++i) sum += sizes[i];
  if (parts == 1) return sum;
  int64_t best = sum, first = 0;
  for (size_t end = begin; end <= sizes.size(); ++end) {
    best = std::min(best, std::max(first, best_cut(sizes, end, parts - 1)));
    if (end < sizes.size()) first += sizes[end];
  }
  return best;
}

TEST(Shards, AreRunsOfWholeMatricesAsEvenAsTheyCanBe) {
  for (const auto& sizes : {std::vector<int64_t>{96, 32, 128, 128, 32},
                            {32},
                            {320, 32, 32, 32},
                            {32, 32, 32, 320},
                            {64, 64, 64, 64, 64, 64},
                            {32, 320, 32, 160, 64, 96, 32}}) {
    const auto specs = parameters_of(sizes);
    for (const int count : {1, 2, 3, 4, 9}) {
      const std::vector<Shard> shards = cut_into_shards(specs, count);
      ASSERT_EQ(shards.size(), static_cast<size_t>(count));
      size_t parameters = 0;
      int64_t elements = 0;
      for (const Shard& shard : shards) {
        EXPECT_EQ(shard.begin, parameters);
        EXPECT_EQ(shard.offset, elements);
        EXPECT_EQ(shard.elements, flat_elements(shard.of(specs)));
        parameters = shard.end;
        elements += shard.elements;
      }
      EXPECT_EQ(parameters, specs.size());
      EXPECT_EQ(elements, flat_elements(specs));
      EXPECT_EQ(largest(shards), best_cut(sizes, 0, std::min(count, 7)));
    }
  }
}

std::vector<Experiment> replicated_experiments() {
  std::vector<Experiment> all;
  for (const char* optimizer : {"adamw", "basis-rotation"}) {
    for (Experiment e : {experiment("1f1b", 3, 3), experiment("pipedream", 3, 1), experiment("amdp", 4, 5),
                         experiment("pipedream-2bw", 3, 3), experiment("interleaved-1f1b", 4, 2)}) {
      e.optimizer = optimizer;
      e.replicas = 3;
      all.push_back(e);
    }
  }
  return all;
}

int64_t bytes_of(const NamedTensors& tensors) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

TEST(Shards, EachReplicaKeepsItsShareOfTheState) {
  for (const Experiment& e : replicated_experiments()) {
    Pipeline all = make_pipeline(e);
    Recorder recorder;
    run_segment(all, e, 0, 3, recorder);
    const NamedTensors state = all.optimizer_state();
    const int workers = all.schedule().workers / e.replicas;
    int64_t sum = 0;
    for (int replica = 0; replica < e.replicas; ++replica) {
      // What its process would hold if each replica had one.
      Pipeline part = make_pipeline(e, {replica * workers, (replica + 1) * workers});
      part.restore(all.weights(), state, 3);
      const NamedTensors share = part.optimizer_state();
      for (const auto& [name, tensor] : share) EXPECT_TRUE(tensor.equal(state.at(name))) << name_of(e) << " " << name;
      sum += bytes_of(share);
      int64_t largest_matrices = 0;  // a share may exceed the mean by one matrix of each stage
      for (int stage = 0; stage < e.stages; ++stage) {
        int64_t most = 0;
        for (const ParameterSpec& spec : all.plan().stages[stage].parameters()) {
          int64_t bytes = 0;
          for (const auto& [name, tensor] : state) {
            if (name.find(spec.name) != std::string::npos) bytes += static_cast<int64_t>(tensor.nbytes());
          }
          most = std::max(most, bytes);
        }
        largest_matrices += most;
      }
      EXPECT_LE(bytes_of(share), bytes_of(state) / e.replicas + largest_matrices) << name_of(e);
      EXPECT_LT(bytes_of(share), bytes_of(state)) << name_of(e);
    }
    EXPECT_EQ(sum, bytes_of(state)) << name_of(e) << ": nothing is kept twice";
  }
}

TEST(Shards, StateAndNormsAreThoseOfOneOwner) {
  for (Experiment e : replicated_experiments()) {
    for (const ClipScope scope : {ClipScope::None, ClipScope::Stage, ClipScope::Global}) {
      if (scope == ClipScope::Global && e.schedule != "1f1b" && e.schedule != "interleaved-1f1b") continue;
      e.clip_scope = scope;
      e.executor = "threads";
      NamedTensors states[2];
      Recorder recorders[2];
      for (const bool shard_optimizer : {false, true}) {
        e.shard_optimizer = shard_optimizer;
        Pipeline pipeline = make_pipeline(e);
        run_segment(pipeline, e, 0, 6, recorders[shard_optimizer]);
        states[shard_optimizer] = pipeline.optimizer_state();
      }
      EXPECT_TRUE(same_bits(states[0], states[1])) << name_of(e);
      EXPECT_EQ(recorders[0].norms, recorders[1].norms) << name_of(e);
      EXPECT_EQ(recorders[0].losses, recorders[1].losses) << name_of(e);
    }
  }
}

// More owners than matrices: some own nothing, and still send their messages.
TEST(Shards, SomeMayBeEmpty) {
  using Of = std::pair<const char*, bool>;
  for (const auto& [optimizer, bf16_moments] :
       {Of("adamw", false), Of("basis-rotation", false), Of("adamw", true), Of("basis-rotation", true)}) {
    Experiment e = experiment("pipedream", 6, 1);  // the first stage is an embedding of two matrices
    e.optimizer = optimizer;
    e.bf16_moments = bf16_moments;
    e.replicas = 5;
    Pipeline pipeline = make_pipeline(e);
    EXPECT_EQ(pipeline.owner(0, 4).weights.specs().size(), 0u);
    const Outcome sharded = run_experiment(e, 4);
    e.executor = "threads";
    expect_same(sharded, run_experiment(e, 4), name_of(e));
    e.shard_optimizer = false;
    expect_same(sharded, run_experiment(e, 4), name_of(e));
  }
}

// State saved under one number of replicas continues under another, sharded or not, to the same bits.
TEST(Shards, AreNoPartOfWhatIsSaved) {
  Experiment e = experiment("1f1b", 3, 2);
  e.optimizer = "basis-rotation";
  e.replicas = 2;
  Pipeline first = make_pipeline(e);
  Recorder begun, expected;
  run_segment(first, e, 0, 4, begun);
  NamedTensors weights, state;
  for (const auto& [name, tensor] : first.weights()) weights[name] = tensor.clone();
  for (const auto& [name, tensor] : first.optimizer_state()) state[name] = tensor.clone();
  run_segment(first, e, 4, 4, expected);
  for (const bool shard_optimizer : {false, true}) {
    e.shard_optimizer = shard_optimizer;
    Pipeline second = make_pipeline(e);
    second.restore(weights, state, 4);
    Recorder found;
    run_segment(second, e, 4, 4, found);
    EXPECT_EQ(found.losses, expected.losses);
    EXPECT_TRUE(same_bits(second.weights(), first.weights()));
  }
}

}  // namespace
}  // namespace gyre
