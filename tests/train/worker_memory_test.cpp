// The memory model against what a worker's tensors take, by a worker that is alone and a heap that counts.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gyre/config/config.h"
#include "gyre/kernels/linear.h"
#include "gyre/optim/settings/optimizer_kind.h"
#include "gyre/tensors/host_memory.h"
#include "gyre/train/memory.h"
#include "train/lone_worker.h"

namespace gyre {
namespace {

using Settings = std::vector<std::string>;

void expect_predicted(const Settings& given, double tolerance = 0.1) {
  Settings settings = {"model.layers=8",        "model.width=128",          "model.heads=4",
                       "model.context=64",      "model.vocabulary=256",     "pipeline.microbatch=4",
                       "pipeline.stages=2",     "optimizer.kind=\"adamw\"", "optimizer.clip_scope=\"stage\"",
                       "run.precision=\"bf16\""};
  settings.insert(settings.end(), given.begin(), given.end());
  heed_limit_of_instructions();  // as the program does
  const Config config = parse_config("[data]\ntokens = \"made up\"\n", "the test", settings);
  const Schedule schedule = build_schedule(config);
  const PredictedMemory predicted = predict_memory(config, schedule);
  const int64_t updates = std::max(4, 2 * schedule.stages);  // some of them while the pipeline is full
  HostMemory memory(1);
  for (int worker = 0; worker < schedule.workers; ++worker) {
    memory.forget_peak();
    const auto before = static_cast<double>(memory.bytes().live);
    testing_support::run_alone(config, schedule, worker, updates * schedule.window * schedule.pipelines);
    const double taken = static_cast<double>(memory.bytes().peak) - before;
    const auto said = static_cast<double>(predicted.workers[static_cast<size_t>(worker)].total());
    EXPECT_NEAR(said / taken, 1, tolerance)
        << "worker " << worker << ", " << taken << " bytes; " << fmt::format("{}", fmt::join(given, " "));
  }
}

TEST(WorkerMemory, IsPredictedWithinATenthUnderEverySchedule) {
  expect_predicted({});
  expect_predicted({"pipeline.weights=\"latest\""});
  expect_predicted({"pipeline.stages=4", "pipeline.accumulate=4"});
  expect_predicted({"pipeline.schedule=\"1f1b\"", "pipeline.accumulate=4"});
  expect_predicted({"pipeline.schedule=\"amdp\"", "pipeline.stages=4", "pipeline.accumulate=4"});
  expect_predicted({"pipeline.schedule=\"pipedream-2bw\"", "pipeline.accumulate=4"});
  expect_predicted({"pipeline.schedule=\"pipedream-2bw\"", "pipeline.accumulate=4", "model.vocabulary=16384"});
  // The layer that holds most while it computes need not do so when the worker keeps most. Without instructions for
  // bf16, layers hold more.
  const double tolerance = has_fast_bf16_products() ? 0.1 : 0.12;
  for (const char* split : {"zb-h1", "zb-v", "dualpipe-v"}) {
    expect_predicted({fmt::format("pipeline.schedule=\"{}\"", split), "pipeline.stages=4", "pipeline.accumulate=8",
                      "pipeline.microbatch=16"},
                     tolerance);
  }
}

TEST(WorkerMemory, IsPredictedWithinATenthForEveryKindOfModelOptimizerAndPrecision) {
  expect_predicted({"pipeline.recompute=true"});
  expect_predicted({"pipeline.recompute=true", "pipeline.stages=1", "pipeline.microbatch=16"});
  expect_predicted({"pipeline.recompute=true", "pipeline.stages=4", "pipeline.microbatch=16"});
  expect_predicted({"optimizer.kind=\"basis-rotation\""});
  expect_predicted({"optimizer.kind=\"basis-rotation\"", "optimizer.basis-rotation.interval=2",
                    "optimizer.basis-rotation.refresh_lag=1"},
                   /*tolerance=*/0.2);  // the peak depends on when the thread that makes bases runs
  for (const int stages : {2, 4}) {
    expect_predicted({"optimizer.kind=\"delay-compensated\"", fmt::format("pipeline.stages={}", stages)});
  }
  expect_predicted({"optimizer.kind=\"muon\""});
  expect_predicted({"model.kind=\"bert\""});
  for (const char* weights : {"stash", "latest"}) {
    expect_predicted({"model.tie=true", "model.vocabulary=4096", fmt::format("pipeline.weights=\"{}\"", weights)});
  }
  expect_predicted({"model.tie=true", "model.vocabulary=16384"});
  expect_predicted({"model.tie=true", "model.vocabulary=4096", "pipeline.stages=4", "pipeline.accumulate=2"});
  expect_predicted({"model.tie=true", "model.vocabulary=4096", "pipeline.schedule=\"1f1b\"", "pipeline.accumulate=4"});
  for (const char* precision : {"bf16", "fp32"}) {
    const std::string in = fmt::format("run.precision=\"{}\"", precision);
    expect_predicted({in});
    expect_predicted({in, "model.kind=\"llama\"", "model.llama.key_value_heads=2", "pipeline.microbatch=32"});
    expect_predicted({in, "model.vocabulary=16384", "pipeline.accumulate=2"});
    expect_predicted({in, "model.width=256", "pipeline.microbatch=1", "pipeline.stages=4", "model.layers=4"});
  }
}

// With few tokens the most is held while an update is made.
TEST(WorkerMemory, OfUpdatesIsPredictedWithinATenth) {
  for (const std::string& kind : optimizer_kinds().names()) {
    for (const char* precision : {"bf16", "fp32"}) {
      Settings settings = {"model.layers=2",
                           "model.width=256",
                           "pipeline.microbatch=1",
                           "model.vocabulary=1024",
                           fmt::format("optimizer.kind=\"{}\"", kind),
                           fmt::format("run.precision=\"{}\"", precision)};
      if (kind == "basis-rotation") settings.push_back("optimizer.basis-rotation.interval=2");
      expect_predicted(settings);
    }
  }
  for (const char* weights : {"predict", "corrected"}) {
    expect_predicted({fmt::format("pipeline.weights=\"{}\"", weights), "pipeline.microbatch=1"});
  }
  expect_predicted({"optimizer.ema_decay=0.9", "pipeline.microbatch=1", "model.vocabulary=8192"});
}

TEST(WorkerMemory, GrowsWithTheContextAndNoFaster) {
  for (const int context : {256, 1024, 2048}) {
    expect_predicted({fmt::format("model.context={}", context), "pipeline.microbatch=1"});
  }
}

// The scores of a block of queries are tensors where matrix products are libtorch's.
TEST(WorkerMemory, OfAttentionInFp32IsPredictedWithinATenth) {
  const auto expect_in_fp32 = [](const char* kind, int width, int heads, int context, int microbatch,
                                 const Settings& more = {}) {
    Settings settings = {fmt::format("model.kind=\"{}\"", kind),
                         fmt::format("model.width={}", width),
                         fmt::format("model.heads={}", heads),
                         fmt::format("model.context={}", context),
                         fmt::format("pipeline.microbatch={}", microbatch),
                         "model.layers=2",
                         "run.precision=\"fp32\""};
    settings.insert(settings.end(), more.begin(), more.end());
    expect_predicted(settings);
  };
  expect_in_fp32("gpt", 64, 64, 2048, 1);
  expect_in_fp32("gpt", 64, 8, 2048, 2);
  expect_in_fp32("gpt", 64, 1, 2048, 2);
  expect_in_fp32("gpt", 64, 8, 200, 8);
  expect_in_fp32("gpt", 64, 16, 128, 8);
  expect_in_fp32("bert", 64, 2, 2048, 1);
  expect_in_fp32("bert", 64, 8, 200, 8);
  expect_in_fp32("llama", 256, 32, 1024, 1);
  expect_in_fp32("llama", 256, 32, 1024, 1, {"model.llama.key_value_heads=4"});
  expect_in_fp32("llama", 64, 4, 200, 8, {"model.llama.key_value_heads=1"});
}

}  // namespace
}  // namespace gyre
