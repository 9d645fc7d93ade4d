// Runs that keep averages of their weights: what metrics say of them, how they go on, and how they are read.
#include <ATen/ATen.h>

#include "gyre/exchange/export_model.h"
#include "gyre/inspect/evaluate_run.h"
#include "gyre/train/saved_averages.h"
#include "support/faulty_files.h"
#include "train/fixture.h"

namespace gyre {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;
using testing_support::Json;
using testing_support::Runs;

const std::vector<std::string> kWithAverages = {"optimizer.ema_decay=0.7"};

class Ema : public Runs {
 protected:
  static CheckpointReader newest(const std::string& name) {
    const fs::path checkpoints = path(name) / "checkpoints";
    return {checkpoints, *latest_checkpoint(checkpoints)};
  }
  // Of the run's validation text, as gyre eval has it.
  static double val_loss(const std::string& name, ModelWeights weights) {
    const TrainedModel model = open_trained_model(path(name), Work::Evaluate, std::nullopt, weights);
    return evaluate_run(model, 2, "").val_loss;
  }
};

TEST_F(Ema, IsEvaluatedBesideTheWeights) {
  run("plain");
  const TrainResult result = run("averaged", {.set = kWithAverages});
  const auto plain = lines("plain", "eval"), averaged = lines("averaged", "eval");
  ASSERT_EQ(averaged.size(), 2U);
  for (size_t i = 0; i < averaged.size(); ++i) {
    EXPECT_EQ(averaged[i]["val_loss"], plain[i]["val_loss"]) << "training is what it is without averages";
    EXPECT_NE(averaged[i]["ema_val_loss"], averaged[i]["val_loss"]);
    EXPECT_FALSE(plain[i].contains("ema_val_loss"));
  }
  EXPECT_EQ(result.ema_val_loss, averaged[1]["ema_val_loss"].get<double>());
  EXPECT_EQ(lines("averaged", "end")[0]["ema_val_loss"], averaged[1]["ema_val_loss"]);
  EXPECT_THAT(messages(), HasSubstr("of the averaged weights"));
  EXPECT_EQ(val_loss("averaged", ModelWeights::Ema), averaged[1]["ema_val_loss"].get<double>());
  EXPECT_EQ(val_loss("averaged", ModelWeights::Trained), averaged[1]["val_loss"].get<double>());
}

TEST_F(Ema, GoesOnAfterAStopWithOtherStagesAndWhateverHappened) {
  run("whole", {.set = kWithAverages});
  for (int64_t at = 0;; at += 5) {
    fs::remove_all(path("hit"));
    FaultyFiles files(at, Fault::Kill);
    complaint("hit", {.set = kWithAverages, .files = &files});
    if (!files.struck()) break;
    run("hit", {.set = kWithAverages, .resume = true});
    ASSERT_EQ(record("hit"), record("whole")) << at;
    ASSERT_EQ(tensors("hit"), tensors("whole")) << at;
  }
  // Averages are under the names of parameters, whatever stage has them.
  run("first", {.set = {"optimizer.ema_decay=0.7", "run.updates=4", "pipeline.schedule=1f1b"}});
  const NamedTensors before = map_averages(newest("first"));
  fs::copy(path("first"), path("second"), fs::copy_options::recursive);
  resume("first", {"run.updates=8"});
  resume("second", {"run.updates=8", "pipeline.stages=2"});
  const NamedTensors three = map_averages(newest("first")), two = map_averages(newest("second"));
  ASSERT_EQ(three.size(), two.size());
  for (const auto& [name, value] : three) {
    EXPECT_LT((value - two.at(name)).abs().max().item<double>(), 1e-5) << name;
    EXPECT_FALSE(at::equal(value, before.at(name))) << name;
  }
}

TEST_F(Ema, BegunByAResumeBeginsWithTheWeights) {
  run("later", {.set = {"run.updates=4"}});
  try {
    map_averages(newest("later"));
    ADD_FAILURE() << "there are none";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("step 4 has no averages"));
  }
  const NamedTensors weights = checkpoint("later").weights;
  resume("later", {"run.updates=5", "optimizer.ema_decay=0.75"});
  // 0.75 of the weights found and 0.25 of the next, but for what the first versions count more.
  const double rate = 0.25 / (1 - std::pow(0.75, 6));
  const NamedTensors next = checkpoint("later").weights, averages = map_averages(newest("later"));
  for (const auto& [name, value] : averages) {
    EXPECT_LT((value - at::lerp(weights.at(name), next.at(name), rate)).abs().max().item<double>(), 1e-6) << name;
  }
  // And turned off again it leaves nothing.
  resume("later", {"run.updates=6", "optimizer.ema_decay=0"});
  EXPECT_THROW(map_averages(newest("later")), InputError);
}

TEST_F(Ema, IsExported) {
  run("run", {.set = kWithAverages});
  export_model({.run = path("run"), .out = path("own")});
  export_model({.run = path("run"), .out = path("average"), .weights = ModelWeights::Ema});
  const NamedTensors own = read_safetensors(path("own") / "model.safetensors"),
                     average = read_safetensors(path("average") / "model.safetensors");
  const NamedTensors weights = checkpoint("run").weights, averages = map_averages(newest("run"));
  const std::string theirs = "transformer.wte.weight", ours = "embedding.token.weight";
  EXPECT_TRUE(at::equal(own.at(theirs), weights.at(ours)));
  EXPECT_TRUE(at::equal(average.at(theirs), averages.at(ours)));
  EXPECT_FALSE(at::equal(average.at(theirs), own.at(theirs)));
}

}  // namespace
}  // namespace gyre
