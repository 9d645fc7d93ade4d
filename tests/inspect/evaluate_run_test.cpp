// gyre eval: what the loss is over, and which data it takes.
#include "gyre/inspect/evaluate_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "gyre/build/build.h"
#include "gyre/core/files.h"
#include "gyre/data/prepare.h"
#include "gyre/data/sources.h"
#include "gyre/model/settings/bert_settings.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

class EvaluateRun : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream text(directory_ / "text.txt");
    for (int i = 0; i < 200; ++i) text << "line " << i * 7919 % 1000 << " of so many\n";
    text.close();
    PrepareOptions options;
    options.texts = {(directory_ / "text.txt").string()};
    options.out = directory_ / "tokens";
    prepare(options);
  }

  // A model that was not trained.
  TrainedModel model_of(const std::string& kind) const {
    TrainedModel model;
    model.config.model.kind = kind;
    model.config.model.layers = 1;
    model.config.model.width = 8;
    model.config.model.heads = 1;
    model.config.model.context = 8;
    model.config.pipeline.stages = 1;
    model.config.pipeline.microbatch = 2;
    model.config.pipeline.executor = "replay";
    model.config.data.tokens = (directory_ / "tokens").string();
    const Dataset dataset = Dataset::open(model.config.data);
    resolve_vocabulary(model.config, dataset);
    model.data = dataset.identity();
    return model;
  }
  static EvaluationResult evaluate(TrainedModel& model, const std::string& data = "") {
    model.checkpoint.weights = build_pipeline(model.config)->weights();
    return evaluate_run(model, 3, data);
  }

  const testing_support::TemporaryDirectory directory_;
};

TEST_F(EvaluateRun, ASumOfLossesHasNoPerplexity) {
  TrainedModel decoder = model_of("gpt");
  const EvaluationResult gpt = evaluate(decoder);
  EXPECT_TRUE(gpt.predicts_all_tokens);
  EXPECT_EQ(gpt.perplexity, std::exp(gpt.val_loss));

  TrainedModel bert = model_of("bert");
  const EvaluationResult masked = evaluate(bert);
  EXPECT_FALSE(masked.predicts_all_tokens);
  EXPECT_EQ(masked.perplexity, std::exp(masked.val_loss));
  bert.config.model.own.get<BertSettings>().sentence_order = true;
  EXPECT_FALSE(evaluate(bert).perplexity);
}

TEST_F(EvaluateRun, TellsOfEachMicrobatch) {
  for (const int stages : {1, 3}) {
    TrainedModel model = model_of("gpt");
    model.config.pipeline.stages = stages;
    model.config.pipeline.executor = "threads";
    model.checkpoint.weights = build_pipeline(model.config)->weights();
    std::vector<std::pair<int64_t, int64_t>> told;
    evaluate_run(model, 3, "", [&](int64_t done, int64_t all) { told.emplace_back(done, all); });
    const std::vector<std::pair<int64_t, int64_t>> expected = {{1, 3}, {2, 3}, {3, 3}};
    EXPECT_EQ(told, expected) << stages;
  }
}

TEST_F(EvaluateRun, PreparedDataHasItsOwnTokenizer) {
  std::filesystem::create_directories(directory_ / "files");
  write_file_atomic(directory_ / "files" / "tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"l": 0, "i": 1,
      "n": 2, "e": 3, "</s>": 4}, "merges": []}})");
  PrepareOptions options;
  options.texts = {(directory_ / "text.txt").string()};
  options.out = directory_ / "prepared";
  options.tokenizer = (directory_ / "files").string();
  prepare(options);
  for (const char* name : {"train.bin", "val.bin"}) {
    std::filesystem::copy(directory_ / "prepared" / name, directory_ / "files" / name);
  }
  TrainedModel model = model_of("gpt");
  model.config.model.vocabulary = 5;
  model.config.data.tokens = model.config.data.tokenizer = (directory_ / "files").string();
  model.config.data.vocabulary = 5;
  model.data = Dataset::open(model.config.data).identity();
  const double own = evaluate(model).val_loss;
  EXPECT_EQ(evaluate(model, (directory_ / "prepared").string()).val_loss, own);
}

}  // namespace
}  // namespace gyre
