// Models of llm.c: import, export, and what is refused. The files are written here as its train_gpt2.py writes them,
// without the code under test.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "exchange/fixture.h"
#include "gyre/checkpoint/checkpoint.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/exchange/export_model.h"
#include "gyre/exchange/import_model.h"
#include "gyre/exchange/imported_run.h"
#include "gyre/tensors/host_memory.h"
#include "gyre/train/run_directory.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

constexpr int64_t kContext = 6, kVocabulary = 10, kBlocks = 2, kHeads = 2, kWidth = 8, kPadded = 128;

std::string bytes_of(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.contiguous();
  return {static_cast<const char*>(plain.data_ptr()), plain.nbytes()};
}

// A file, and its weights by gyre's names.
struct LlmcFile {
  std::string bytes;
  NamedTensors weights;
};

LlmcFile llmc_file(int version, int64_t width = kWidth, int64_t vocabulary = kVocabulary) {
  const at::ScalarType type = version == 3 ? at::kFloat : at::kBFloat16;
  LlmcFile file;
  at::Tensor header = at::zeros({256}, at::kInt);
  const std::vector<int64_t> begin = {20240326, version, kContext, vocabulary, kBlocks, kHeads, width, kPadded};
  for (size_t i = 0; i < begin.size(); ++i) header[static_cast<int64_t>(i)] = begin[i];
  file.bytes = bytes_of(header);
  const auto add = [&](const std::string& name, at::IntArrayRef shape) {
    const at::Tensor weight = at::randn(shape).to(type);
    file.weights[name] = weight.to(at::kFloat);
    file.bytes += bytes_of(weight);
  };
  const auto add_to_blocks = [&](const char* name, at::IntArrayRef shape) {
    for (int64_t block = 0; block < kBlocks; ++block) add(fmt::format("blocks.{}.{}", block, name), shape);
  };
  add("embedding.token.weight", {vocabulary, width});
  file.bytes += bytes_of(at::zeros({kPadded - vocabulary, width}, type));
  add("embedding.position.weight", {kContext, width});
  add_to_blocks("norm1.weight", {width});
  add_to_blocks("norm1.bias", {width});
  add_to_blocks("attention.qkv.weight", {3 * width, width});
  add_to_blocks("attention.qkv.bias", {3 * width});
  add_to_blocks("attention.projection.weight", {width, width});
  add_to_blocks("attention.projection.bias", {width});
  add_to_blocks("norm2.weight", {width});
  add_to_blocks("norm2.bias", {width});
  add_to_blocks("mlp.in.weight", {4 * width, width});
  add_to_blocks("mlp.in.bias", {4 * width});
  add_to_blocks("mlp.out.weight", {width, 4 * width});
  add_to_blocks("mlp.out.bias", {width});
  add("head.norm.weight", {width});
  add("head.norm.bias", {width});
  return file;
}

class Llmc : public testing::Test {
 protected:
  // The file becomes `run`.
  ImportResult import(const std::string& bytes, int64_t context = 0, const fs::path& tokenizer = {}) {
    fs::remove_all(place_ / "run");
    write_file_atomic(file_, bytes);
    return import_model({.from = file_, .out = place_ / "run", .tokenizer = tokenizer, .context = context});
  }
  // Why it is refused, on one line.
  std::string complaint(const std::string& bytes, int64_t context = 0) {
    try {
      import(bytes, context);
    } catch (const InputError& error) {
      EXPECT_FALSE(fs::exists(place_ / "run"));
      EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
      EXPECT_THAT(error.what(), HasSubstr("gpt2.bin"));
      return error.what();
    }
    return "accepted";
  }
  // With a field of the header at another value.
  std::string complaint_with(size_t field, int32_t value) {
    std::string bytes = sound_.bytes;
    std::memcpy(bytes.data() + sizeof(value) * field, &value, sizeof(value));
    return complaint(bytes);
  }
  // Of `run`, or of the model of these settings, drawn at random.
  std::string exported(const std::string& dtype) {
    fs::remove_all(place_ / "back");
    export_model({.run = place_ / "run", .out = place_ / "back", .format = ExportFormat::LlmC, .dtype = dtype});
    return read_file(place_ / "back" / kLlmcFile);
  }
  std::string export_complaint(const ModelSettings& settings, const std::string& dtype = "auto") {
    fs::remove_all(place_ / "model");
    fs::remove_all(place_ / "run");
    testing_support::write_small_model(place_ / "model", settings);
    import_model({.from = place_ / "model", .out = place_ / "run"});
    try {
      exported(dtype);
    } catch (const InputError& error) {
      EXPECT_FALSE(fs::exists(place_ / "back"));
      return error.what();
    }
    return "accepted";
  }
  NamedTensors imported_weights() const {
    return load_checkpoint(RunDirectory(place_ / "run").checkpoints(), 0).weights;
  }
  static ModelSettings small_gpt2() {
    ModelSettings settings = testing_support::small_llama();
    settings.kind = "gpt";
    settings.mlp_width = 4 * settings.width;
    settings.bias = settings.tie = true;
    settings.activation = "gelu-tanh";
    return settings;
  }

  const testing_support::TemporaryDirectory place_;
  const fs::path file_ = place_ / "gpt2.bin";
  const LlmcFile sound_ = llmc_file(3);
};

TEST_F(Llmc, EveryWeightIsImportedAndExported) {
  for (const int version : {3, 5}) {
    const LlmcFile file = llmc_file(version);
    const ImportResult result = import(file.bytes);
    EXPECT_EQ(result.model_type, "gpt2");
    EXPECT_EQ(result.dtype, version == 3 ? "F32" : "BF16");
    EXPECT_EQ(result.vocabulary, kVocabulary);
    EXPECT_EQ(result.context, kContext);
    const NamedTensors weights = imported_weights();
    EXPECT_EQ(weights.size(), file.weights.size());
    int64_t parameters = 0;
    for (const auto& [name, weight] : file.weights) {
      EXPECT_TRUE(weights.at(name).equal(weight)) << name;
      parameters += weight.numel();
    }
    EXPECT_EQ(result.parameters, parameters);
    EXPECT_TRUE(exported("auto") == file.bytes);
    EXPECT_EQ(RunDirectory(place_ / "run").load_config().run.precision, version == 3 ? "fp32" : "bf16");
    EXPECT_TRUE(fs::exists(place_ / "run" / "train.toml"));
  }
}

TEST_F(Llmc, AModelGoesFromOneFormToTheOther) {
  import(sound_.bytes);
  export_model({.run = place_ / "run", .out = place_ / "theirs"});
  fs::remove_all(place_ / "run");
  import_model({.from = place_ / "theirs", .out = place_ / "run"});
  EXPECT_TRUE(exported("fp32") == sound_.bytes);

  import(llmc_file(5).bytes);
  fs::remove_all(place_ / "theirs");
  export_model({.run = place_ / "run", .out = place_ / "theirs"});
  fs::remove_all(place_ / "run");
  EXPECT_EQ(import_model({.from = place_ / "theirs", .out = place_ / "run"}).dtype, "BF16") << "as it came";
}

TEST_F(Llmc, ABiasThatTheModelLacksIsZeros) {
  ModelSettings settings = small_gpt2();
  settings.bias = false;
  ImportedRun run(place_ / "run", settings, "F32", system_files());
  run.write_weights(own_tensors(settings), [](const auto&, const auto& shape) { return at::randn(shape); }, {});
  run.complete();
  const NamedTensors without = imported_weights();
  import(exported("fp32"));
  for (const auto& [name, weight] : imported_weights()) {
    if (name.ends_with(".bias")) {
      EXPECT_EQ(weight.count_nonzero().item<int64_t>(), 0) << name;
    } else {
      EXPECT_TRUE(weight.equal(without.at(name))) << name;
    }
  }
}

TEST_F(Llmc, AHeaderThatIsNotAModelsIsRefused) {
  EXPECT_THAT(complaint_with(1, 1), HasSubstr("is an llm.c model of version 1; 3 (fp32) and 5 (bf16) are read"));
  for (const int version : {-1, 0, 2, 4, 6}) EXPECT_THAT(complaint_with(1, version), HasSubstr("of version"));
  EXPECT_THAT(complaint_with(1, 5), HasSubstr("is too long: its header says"));
  EXPECT_THAT(complaint_with(0, 20240803), HasSubstr("is a Llama of llm.c"));
  EXPECT_THAT(complaint_with(0, 20240327), HasSubstr("is a file; give the model's directory"));
  for (const size_t size : {2, 3, 4, 5, 6}) {
    for (const int value : {0, -1, INT32_MIN, INT32_MAX}) {
      EXPECT_THAT(complaint_with(size, value), HasSubstr("describes a model that gyre does not have: [model] "));
    }
  }
  EXPECT_THAT(complaint_with(5, 3), HasSubstr("heads"));  // do not divide the width
  for (const int value : {0, -1, INT32_MIN, static_cast<int>(kVocabulary) - 1}) {
    EXPECT_THAT(complaint_with(7, value), HasSubstr("by its header the vocabulary is 10, and padded it is"));
  }
  for (const size_t size : {2, 4, 7})
    EXPECT_THAT(complaint_with(size, 1000), HasSubstr("is truncated: its header says"));
}

TEST_F(Llmc, AFileOfAnotherLengthIsRefused) {
  const std::string& whole = sound_.bytes;
  for (const size_t bytes : {size_t{4}, size_t{1023}}) {
    EXPECT_THAT(
        complaint(whole.substr(0, bytes)),
        HasSubstr(fmt::format("is truncated: it has {} bytes, and the header of an llm.c model has 1024", bytes)));
  }
  for (const size_t bytes : {size_t{1024}, size_t{1025}, whole.size() / 2, whole.size() - 1}) {
    EXPECT_THAT(complaint(whole.substr(0, bytes)),
                HasSubstr(fmt::format("is truncated: its header says {} bytes, the file has {}", whole.size(), bytes)));
  }
  EXPECT_THAT(complaint(whole + "x"), HasSubstr("is too long"));
  EXPECT_THAT(complaint(""), HasSubstr("is a file; give the model's directory"));
}

TEST_F(Llmc, AWeightThatIsNoNumberIsRefused) {
  for (const float value : {NAN, INFINITY, -INFINITY}) {
    std::string bytes = sound_.bytes;
    std::memcpy(bytes.data() + bytes.size() - sizeof(value), &value, sizeof(value));
    EXPECT_THAT(complaint(bytes), HasSubstr("gpt2.bin: 'head.norm.bias' has values that are not finite numbers"));
  }
}

TEST_F(Llmc, LearnedPositionsHaveOneContext) {
  EXPECT_EQ(import(sound_.bytes, kContext).context, kContext);
  EXPECT_THAT(complaint(sound_.bytes, kContext - 1), HasSubstr("has 6 positions, which are learned"));
}

TEST_F(Llmc, ATokenizerCanBeGiven) {
  const fs::path path = place_ / "tokenizer.json";
  const auto write = [&](int tokens) {
    nlohmann::json vocabulary = {{"<|endoftext|>", 0}};
    for (int id = 1; id < tokens; ++id) vocabulary[std::string(1, static_cast<char>('a' + id))] = id;
    const nlohmann::json json = {
        {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", nlohmann::json::array()}}}};
    write_file_atomic(path, json.dump());
  };
  write(kVocabulary);
  const ImportResult result = import(sound_.bytes, 0, path);
  ASSERT_TRUE(result.tokenizer);
  EXPECT_EQ(result.tokenizer->end_of_document_text, "<|endoftext|>");
  EXPECT_TRUE(fs::exists(place_ / "run" / "tokenizer" / "tokenizer.json"));
  EXPECT_FALSE(import(sound_.bytes).tokenizer);
  EXPECT_FALSE(fs::exists(place_ / "run" / "tokenizer" / "tokenizer.json"));

  fs::remove_all(place_ / "run");
  write(kVocabulary + 1);
  const auto refused = [&](const ImportOptions& options) -> std::string {
    try {
      import_model(options);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refused({.from = file_, .out = place_ / "run", .tokenizer = path}),
              HasSubstr("has 11 tokens, and the model has 10"));
  testing_support::write_small_llama(place_ / "theirs");
  EXPECT_THAT(refused({.from = place_ / "theirs", .out = place_ / "run", .tokenizer = path}),
              HasSubstr("--tokenizer is for models of llm.c"));
  EXPECT_FALSE(fs::exists(place_ / "run"));
}

TEST_F(Llmc, AModelThatLlmcLacksIsNotExported) {
  EXPECT_EQ(export_complaint(small_gpt2()), "accepted");
  EXPECT_EQ(export_complaint(small_gpt2(), "bf16"), "accepted");
  EXPECT_THAT(export_complaint(small_gpt2(), "fp16"),
              HasSubstr("in fp32 or bf16, not fp16; give --dtype fp32 or bf16"));
  ModelSettings settings = small_gpt2();
  settings.tie = false;
  EXPECT_EQ(export_complaint(settings), "llm.c has no such model; it needs [model] tie = true");
  settings = small_gpt2();
  settings.activation = "gelu";
  EXPECT_EQ(export_complaint(settings), "llm.c has no such model; it needs [model] activation = \"gelu-tanh\"");
  settings = small_gpt2();
  settings.mlp_width = 8;
  EXPECT_EQ(export_complaint(settings), "llm.c has no such model; it needs [model] mlp_width = 4 * width");
  EXPECT_THAT(export_complaint(testing_support::small_llama()), HasSubstr("kind = \"gpt\", not \"llama\""));
}

// A model may be larger than the memory.
TEST_F(Llmc, AnImportHoldsOneParameterAtATime) {
  const LlmcFile file = llmc_file(5, 256, 100);
  const HostMemory memory(1);
  const int64_t parameters = import(file.bytes).parameters;
  const size_t largest = sizeof(float) * 4 * 256 * 256;
  EXPECT_GT(sizeof(float) * static_cast<size_t>(parameters), 4 * largest);
  EXPECT_GE(memory.bytes().peak, largest);
  EXPECT_LT(memory.bytes().peak, largest + 4096);
}

}  // namespace
}  // namespace gyre
