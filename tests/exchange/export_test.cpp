// What an exported model says of special tokens: generate() of transformers stops at the ones that it names.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "exchange/fixture.h"
#include "gyre/checkpoint/checkpoint.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/data/dataset.h"
#include "gyre/exchange/export_model.h"
#include "gyre/exchange/import_model.h"
#include "gyre/model/settings/bert_settings.h"
#include "gyre/tokenizers/tokenizer_model.h"
#include "gyre/train/run_directory.h"
#include "support/forwarding_files.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

// 12 tokens.
std::string tokenizer_json(int end) {
  Json vocabulary;
  for (int id = 0; id < 12; ++id) {
    vocabulary[id == end ? std::string("</s>") : std::string(1, static_cast<char>('a' + id))] = id;
  }
  return Json{{"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}}}.dump();
}

// A run of an imported model with its tokenizer.
class Export : public testing::Test {
 protected:
  void SetUp() override {
    testing_support::write_small_llama(model_);
    Json config = Json::parse(read_file(model_ / "config.json"));
    config.update({{"bos_token_id", 1}, {"eos_token_id", {2, 3}}, {"pad_token_id", 4}, {"sep_token_id", 5}});
    write_file_atomic(model_ / "config.json", config.dump());
    write_file_atomic(model_ / "tokenizer.json", tokenizer_json(2));
    write_file_atomic(model_ / "generation_config.json", R"({"eos_token_id": 2})");
    import_model({.from = model_, .out = run_});
  }
  void give_tokenizer(const std::string& json, const std::string& end = "") {
    import_tokenizer({"json", json, "", end}, 12, run_ / "tokenizer");
  }
  Json exported_config() {
    fs::remove_all(out_);
    export_model({.run = run_, .out = out_});
    return Json::parse(read_file(out_ / "config.json"));
  }
  void expect_end(const Json& end) {
    const Json config = exported_config();
    EXPECT_EQ(config.at("eos_token_id"), end);
    EXPECT_EQ(config.at("bos_token_id"), Json());
    EXPECT_EQ(config.at("pad_token_id"), Json());
    EXPECT_FALSE(config.contains("sep_token_id"));
    EXPECT_FALSE(fs::exists(out_ / "generation_config.json"));
  }

  // A BERT in the place of the model, which is yet to be imported.
  ModelSettings make_bert() {
    ModelSettings settings = testing_support::small_llama();
    settings.kind = "bert";
    settings.bias = true;
    settings.activation = "gelu";
    fs::remove_all(run_);
    fs::remove_all(model_);
    testing_support::write_small_model(model_, settings);
    return settings;
  }

  const testing_support::TemporaryDirectory place_;
  const fs::path model_ = place_ / "model", run_ = place_ / "run", out_ = place_ / "out";
};

TEST_F(Export, KeepsTheSpecialTokensOfTheImportedTokenizer) {
  const auto expect_kept = [&] {
    const Json config = exported_config();
    EXPECT_EQ(config.at("bos_token_id"), 1);
    EXPECT_EQ(config.at("eos_token_id"), Json({2, 3}));
    EXPECT_EQ(config.at("pad_token_id"), 4);
    EXPECT_TRUE(fs::exists(out_ / "generation_config.json"));
    EXPECT_EQ(read_file(out_ / "tokenizer.json"), tokenizer_json(2));
  };
  expect_kept();
  give_tokenizer(tokenizer_json(2), "</s>");  // prepared with the same token for the end
  expect_kept();
  fs::remove_all(run_ / "tokenizer");  // one that gyre does not read, or tokens that came without one
  expect_kept();
}

TEST_F(Export, NamesTheEndOfAnotherTokenizersDocuments) {
  give_tokenizer(tokenizer_json(7));
  expect_end(7);
  EXPECT_EQ(read_file(out_ / "tokenizer.json"), tokenizer_json(7));
  give_tokenizer(tokenizer_json(2), "d");
  expect_end(3);
}

// The run has it as a tokenizer.json.
TEST_F(Export, GivesAVocabularyBackAsItCame) {
  make_bert();
  write_file_atomic(model_ / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  import_model({.from = model_, .out = run_});
  EXPECT_FALSE(exported_config().contains("eos_token_id"));
  EXPECT_EQ(read_file(out_ / "vocab.txt"), read_file(model_ / "vocab.txt"));
  EXPECT_FALSE(fs::exists(out_ / "tokenizer.json"));
}

// A BERT whose special tokens follow the vocabulary, although the tokenizer has them at 2, 3 and 4.
TEST_F(Export, HasBertsSpecialTokensWhereTheTokenizerHasThem) {
  const ModelSettings settings = make_bert();
  import_model({.from = model_, .out = run_});
  fs::create_directories(run_ / "tokenizer");
  write_file_atomic(place_ / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  import_tokenizer(read_tokenizer(place_ / "."), 6, run_ / "tokenizer");
  exported_config();

  const SafetensorsFile before(model_ / "model.safetensors"), after(out_ / "model.safetensors");
  const at::Tensor rows = at::tensor({0, 1, 9, 10, 11, 5, 6, 7, 8, 2, 3, 4});
  for (const TensorEntry& tensor : before.tensors()) {
    const at::Tensor was = before.view(tensor);
    const bool is_moved = was.size(0) == settings.vocabulary;
    const auto written = std::ranges::find(after.tensors(), tensor.name, &TensorEntry::name);
    EXPECT_TRUE(after.view(*written).equal(is_moved ? was.index_select(0, rows) : was)) << tensor.name;
  }
  fs::remove_all(run_);
  import_model({.from = out_, .out = run_});
  const Config config = RunDirectory(run_).load_config();
  EXPECT_EQ(config.model.own.of_kind("bert").get<BertSettings>().mask_token, 4);
}

TEST_F(Export, NamesNoTokenOfAModelWithoutATokenizer) {
  fs::remove_all(run_ / "hugging_face");
  expect_end(2);
  DatasetMeta none;
  none.tokenizer = kNoTokenizer;
  write_file_atomic(run_ / "tokenizer" / "meta.json", none.to_json());
  expect_end(Json());
  EXPECT_FALSE(fs::exists(out_ / "tokenizer.json"));
}

// Adds a checkpoint of the run with the weights of the newest, and `changed` in place of those of its names.
void add_checkpoint(const RunDirectory& run, int64_t step, const NamedTensors& changed = {}) {
  CheckpointState state = load_checkpoint(run.checkpoints(), *latest_checkpoint(run.checkpoints()));
  for (const auto& [name, tensor] : changed) state.weights[name] = tensor;
  CheckpointUnderConstruction checkpoint(run.checkpoints(), step);
  CheckpointRecord record;
  record.step = step;
  record.model = state.model;
  checkpoint.commit(record, write_shards(checkpoint.directory(), state.weights, {}, {}));
}

TEST_F(Export, RefusesAWeightBeyondTheType) {
  const at::Tensor norm = at::ones({8});
  const auto message_of = [&](float value, const std::string& dtype) -> std::string {
    norm[3].fill_(value);
    fs::remove_all(run_ / "checkpoints" / "step-00000001");
    add_checkpoint(RunDirectory(run_), 1, {{"head.norm.weight", norm}});
    fs::remove_all(out_);
    try {
      export_model({.run = run_, .out = out_, .dtype = dtype});
      EXPECT_TRUE(fs::exists(out_));
      return "";
    } catch (const InputError& error) {
      EXPECT_FALSE(fs::exists(out_));
      return error.what();
    }
  };
  EXPECT_EQ(message_of(65504, "fp16"), "");
  EXPECT_EQ(message_of(-1e5F, "fp16"), "'model.norm.weight' has -100000, beyond fp16; give --dtype bf16");
  EXPECT_EQ(message_of(-1e5F, "bf16"), "");
  EXPECT_EQ(message_of(3.4e38F, "bf16"), "'model.norm.weight' has 3.4e+38, beyond bf16; give --dtype fp32");
  EXPECT_EQ(message_of(3.4e38F, "fp32"), "");
  EXPECT_EQ(message_of(INFINITY, "fp16"), "") << "it was infinite before";
}

// Replaces the run's only checkpoint by the next when the export makes its directory, as a run that trains may.
class TrainsMeanwhile final : public ForwardingFiles {
 public:
  explicit TrainsMeanwhile(const fs::path& run) : run_(run) {}
  int make_directory(const Path& path) override {
    if (*latest_checkpoint(run_.checkpoints()) == 0) {
      add_checkpoint(run_, 7);
      fs::remove_all(checkpoint_path(run_.checkpoints(), 0));
    }
    return ForwardingFiles::make_directory(path);
  }

 private:
  const RunDirectory run_;
};

TEST_F(Export, ReadsANewerCheckpointIfTheNewestWasReplaced) {
  TrainsMeanwhile files(run_);
  EXPECT_EQ(export_model({.run = run_, .out = out_, .files = &files}).step, 7);
  EXPECT_TRUE(fs::exists(out_ / "model.safetensors"));
}

// Notes whether the checkpoint's weights lie in a map of their file while those of the export are written.
class SeesMaps final : public ForwardingFiles {
 public:
  int open(const Path& path, int flags, mode_t mode) override {
    if (path.filename() == "model.safetensors") {
      std::ifstream maps("/proc/self/maps");
      const std::string text(std::istreambuf_iterator<char>(maps), {});
      maps_.push_back(text.find("step-00000000/model.safetensors") != std::string::npos);
    }
    return ForwardingFiles::open(path, flags, mode);
  }
  const std::vector<bool>& maps() const { return maps_; }

 private:
  std::vector<bool> maps_;
};

// A copy of them would take as much memory as the model in fp32.
TEST_F(Export, CopiesNoWeightsIntoMemory) {
  SeesMaps files;
  export_model({.run = run_, .out = out_, .files = &files});
  EXPECT_THAT(files.maps(), testing::ElementsAre(true));
}

// As generate says it, of a run whose checkpoints were removed.
TEST_F(Export, SaysThatCheckpointsAreMissing) {
  write_file_atomic(run_ / "metrics.jsonl", R"({"event":"checkpoint","step":20})"
                                            "\n");
  fs::remove_all(run_ / "checkpoints");
  try {
    export_model({.run = run_, .out = out_});
    FAIL() << "exported";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("says that one was written at step 20; mount or put back"));
  }
}

}  // namespace
}  // namespace gyre
