// Predicted memory: a bound below what runs hold, refusals that name the key, arithmetic that cannot overflow.
#include "gyre/train/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gyre/core/error.h"
#include "gyre/train/build.h"

namespace gyre {
namespace {

using ::testing::HasSubstr;

Config small() {
  return parse_config("[data]\ntokens = \"x\"\n[model]\nlayers = 4\nwidth = 32\nheads = 2\nvocabulary = 256\n", "x",
                      {});
}

std::string complaint(const Config& config, double bytes) {
  try {
    check_memory(config, {bytes, "this machine has 16.0 GiB of memory available"});
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
  EXPECT_EQ(least_memory(config).optimizer, 12 * parameters) << "moments and masters";
}

TEST(Memory, TheLeastIsNoMoreThanAnySchedulePredicts) {
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1", "chimera", "pipedream", "pipedream-2bw", "paci", "amdp"}) {
    for (const bool recompute : {false, true}) {
      Config config = small();
      config.pipeline.schedule = schedule;
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
