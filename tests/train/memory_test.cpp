// Predicted memory: a bound below what runs hold, refusals that name the key, arithmetic that cannot overflow.
#include "gyre/train/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gyre/build/build.h"
#include "gyre/core/bytes.h"
#include "gyre/core/error.h"
#include "gyre/core/memory_limit.h"

namespace gyre {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

Config small() {
  return parse_config("[data]\ntokens = \"x\"\n[model]\nlayers = 4\nwidth = 32\nheads = 2\nvocabulary = 256\n", "x",
                      {});
}

std::string complaint(const Config& config, double bytes, Work work = Work::Train) {
  try {
    check_memory(config, {bytes, "this machine has {} of memory available"}, work);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Memory, TheLeastIsWhatThePartsAre) {
  Config config = small();
  config.run.precision = "fp32";
  config.optimizer.kind = "adamw";
  const MemoryParts least = least_memory(config);
  const auto parameters = static_cast<double>(build_pipeline(config)->parameter_count());
  EXPECT_EQ(least.weights, 4 * parameters);
  EXPECT_EQ(least.gradients, 4 * parameters);
  EXPECT_EQ(least.optimizer, 8 * parameters);
  config.run.precision = "bf16";
  EXPECT_EQ(least_memory(config).weights, 2 * parameters);
  EXPECT_EQ(least_memory(config).optimizer, 10 * parameters) << "moments, and what rounding took from the masters";
  config.optimizer.ema_decay = 0.99;
  EXPECT_EQ(least_memory(config).optimizer, 14 * parameters) << "and averages";
}

TEST(Memory, TheLeastIsNoMoreThanAnySchedulePredicts) {
  for (const char* schedule :
       {"gpipe", "1f1b", "zb-h1", "zb-v", "dualpipe-v", "chimera", "pipedream", "pipedream-2bw", "paci", "amdp"}) {
    for (const auto& [recompute, replicas] : {std::pair{false, 1}, {true, 1}, {false, 3}}) {
      Config config = small();
      config.pipeline.schedule = schedule;
      config.pipeline.replicas = replicas;
      config.pipeline.stages = 4;
      config.pipeline.accumulate = 4;
      config.pipeline.recompute = recompute;
      const PredictedMemory predicted = predict_memory(config, build_schedule(config));
      const MemoryParts least = least_memory(config);
      EXPECT_LE(least.weights, predicted.process.weights) << schedule;
      EXPECT_LE(least.gradients, predicted.process.gradients) << schedule;
      EXPECT_NEAR(least.optimizer, predicted.process.optimizer, 10) << schedule;
      if (!recompute) {
        EXPECT_LE(least.activations, predicted.process.activations + 10) << schedule;
      }
    }
  }
}

// There gradients take the place of activations.
TEST(Memory, TheLeastIsNoMoreThanWindowsOfOneMicrobatchAreSaidToTake) {
  for (const char* schedule : {"gpipe", "1f1b", "pipedream"}) {
    for (const int64_t stages : {1, 2, 4}) {
      for (const bool recompute : {false, true}) {
        Config config = small();
        config.pipeline.schedule = schedule;
        config.pipeline.stages = stages;
        config.pipeline.accumulate = 1;
        config.pipeline.recompute = recompute;
        const MemoryParts process = predict_memory(config, build_schedule(config)).process,
                          least = least_memory(config);
        EXPECT_LE(least.gradients + least.activations, process.gradients + process.activations + 10)
            << schedule << ", " << stages << " stages" << (recompute ? ", recompute" : "");
        EXPECT_NEAR(least.optimizer, process.optimizer, 10) << schedule;
      }
    }
  }
}

double bytes_of(const NamedTensors& tensors) {
  double bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += static_cast<double>(tensor.nbytes());
  return bytes;
}

TEST(Memory, WhatIsDoneWithATrainedRunHoldsNoLess) {
  for (const char* optimizer : {"adamw", "basis-rotation", "muon"}) {
    for (const char* precision : {"fp32", "bf16"}) {
      Config config = small();
      config.optimizer.kind = optimizer;
      config.run.precision = precision;
      config.pipeline.accumulate = 2;  // gradients of the first microbatch stand beside activations of the second
      const auto pipeline = build_pipeline(config);
      const double weights = bytes_of(pipeline->weights()), state = bytes_of(pipeline->optimizer_state());
      const bool is_half = precision == std::string("bf16");
      const double half = is_half ? weights / 2 : 0;  // a version, and what rounding took from the masters
      const double moments = least_memory(config).optimizer - half;
      const auto without_activations = [&](Work work) {
        const MemoryParts least = least_memory(config, work);
        return least.total() - least.activations;
      };
      // The checkpoint's weights take no memory where they are read in its file.
      EXPECT_EQ(without_activations(Work::Generate), weights - half);
      EXPECT_EQ(without_activations(Work::Evaluate), weights);
      // The checkpoint, the model that it is restored into, and what belongs to that.
      EXPECT_EQ(without_activations(Work::Diagnose), 3 * weights + moments);
      EXPECT_LE(moments, 2 * state) << "the checkpoint's and the optimizer's own";
      EXPECT_EQ(least_memory(config, Work::Generate).activations, 0);
      config.model.dropout = 0;
      config.pipeline.recompute = true;
      EXPECT_EQ(least_memory(config, Work::Evaluate).activations, least_memory(config).activations);
      config.pipeline.recompute = false;
      EXPECT_GE(least_memory(config, Work::Diagnose).activations, least_memory(config).activations);
    }
  }
}

TEST(Memory, TheCopyForCheckpointsIsOfAllThatIsSavedAndOnlyMadeWhereItFits) {
  for (const char* optimizer : {"adamw", "basis-rotation", "muon"}) {
    for (const char* precision : {"fp32", "bf16"}) {
      Config config = small();
      config.optimizer.kind = optimizer;
      config.run.precision = precision;
      const PredictedMemory predicted = predict_memory(config, build_schedule(config));
      const auto pipeline = build_pipeline(config);
      const double saved = bytes_of(pipeline->weights()) + bytes_of(pipeline->optimizer_state());
      EXPECT_GE(predicted.copy, 0.97 * saved) << optimizer << precision;
      EXPECT_LE(predicted.copy, 1.2 * saved) << optimizer << precision;
      const double all = predicted.process.total() + predicted.copy;
      EXPECT_TRUE(has_room_for_copy(predicted, 1000, {all + 1000, "a machine"}));
      EXPECT_FALSE(has_room_for_copy(predicted, 1000, {all + 900, "a machine"}));
    }
  }
}

TEST(Memory, WhatCannotBeDoneWithATrainedRunIsRefused) {
  Config config = small();
  config.pipeline.microbatch = 1 << 20;
  EXPECT_EQ(complaint(config, 0x1p34, Work::Generate), "accepted");
  EXPECT_THAT(complaint(config, 0x1p30, Work::Evaluate),
              AllOf(HasSubstr("evaluating this run needs "), HasSubstr("microbatch = 1048576 costs most, with 8 it "),
                    HasSubstr("change it in the run's config.toml")));
  EXPECT_THAT(complaint(config, 0x1p30, Work::Diagnose), HasSubstr("diagnosing this run needs "));
  config.model.width = 1 << 20;
  EXPECT_THAT(complaint(config, 0x1p34, Work::Generate),
              AllOf(HasSubstr("generating with this run needs "), HasSubstr("width = 1048576 costs most; it takes")));
}

TEST(Memory, ARunThatIsPredictedToFitWithRecomputeIsToldSo) {
  Config config = small();
  config.pipeline.schedule = "gpipe";
  config.pipeline.stages = 1;
  config.pipeline.accumulate = 4;  // all in memory at once, of which the least counts one
  config.pipeline.microbatch = 4096;
  config.model.layers = 32;
  const double least = least_memory(config).total();
  config.pipeline.recompute = true;
  const PredictedMemory predicted = predict_memory(config, build_schedule(config));
  const double otherwise = predicted.process.total() + predicted.copy + resident_bytes();
  ASSERT_GT(otherwise, least_memory(config).total() + 0x1p29);
  ASSERT_LT(otherwise + 0x1p28, least);
  config.pipeline.recompute = false;
  const std::string advised = complaint(config, least - 1),
                    begins = ", or set [pipeline] recompute = true, with which ";
  const size_t at = advised.find(begins);
  ASSERT_NE(at, std::string::npos) << advised;
  EXPECT_THAT(advised, EndsWith(" GiB are predicted"));
  EXPECT_NEAR(std::stod(advised.substr(at + begins.size())), otherwise / 0x1p30, 0.2);
  EXPECT_THAT(complaint(config, otherwise - 0x1p28), Not(HasSubstr("recompute"))) << "it does not fit";
  EXPECT_THAT(complaint(config, 1000), Not(HasSubstr("recompute")));
  EXPECT_THAT(complaint(config, least / 2, Work::Evaluate), Not(HasSubstr("recompute")));
}

TEST(Memory, ARunThatCannotFitIsRefusedByTheKeyThatCostsMost) {
  const double machine = 0x1p34;
  EXPECT_EQ(complaint(small(), machine), "accepted");
  const auto with = [](auto&& change) {
    Config config = small();
    change(config);
    return config;
  };
  EXPECT_THAT(
      complaint(with([](Config& c) { c.model.width = 1 << 20; }), machine),
      HasSubstr("and this machine has 16.0 GiB of memory available; [model] width = 1048576 costs most, with 256 "));
  EXPECT_THAT(complaint(with([](Config& c) { c.model.context = 1 << 24; }), machine),
              HasSubstr("context = 16777216 costs"));
  EXPECT_THAT(complaint(with([](Config& c) { c.model.vocabulary = 1 << 30; }), machine), HasSubstr("vocabulary = "));
  EXPECT_THAT(complaint(with([](Config& c) { c.model.mlp_width = 1 << 24; }), machine), HasSubstr("mlp_width = "));
  EXPECT_THAT(complaint(with([](Config& c) { c.model.layers = 100000; }), 1e9),
              HasSubstr("layers = 100000 costs most"));
  EXPECT_THAT(complaint(with([](Config& c) { c.pipeline.microbatch = 1 << 20; }), machine), HasSubstr("microbatch = "));
  EXPECT_THAT(complaint(small(), 1000), HasSubstr("make the model smaller"));
  const double least = least_memory(small()).total();
  const auto [needed, there] = distinct_bytes(least, least - 1);
  EXPECT_NE(needed, there);
  EXPECT_THAT(complaint(small(), least - 1), HasSubstr(needed + " at least, and this machine has " + there));
  EXPECT_THAT(complaint(with([](Config& c) {
                          c.model.width = c.model.heads = 1 << 20;
                          c.model.context = 1 << 24;
                          c.pipeline.microbatch = 1 << 20;
                        }),
                        machine),
              HasSubstr("EiB at least"))
      << "sizes that fit no integer";
}

}  // namespace
}  // namespace gyre
