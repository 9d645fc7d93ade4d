// What import takes and what it refuses, of a model of transformers.
#include "gyre/exchange/import_model.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "exchange/fixture.h"
#include "gyre/checkpoint/safetensors.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/exchange/export_model.h"
#include "gyre/exchange/hugging_face/llama_parts.h"
#include "gyre/model/settings/llama_settings.h"
#include "gyre/model/settings/special_tokens.h"
#include "gyre/tensors/host_memory.h"
#include "gyre/tokenizers/tokenizer.h"
#include "gyre/train/run_directory.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;
namespace fs = std::filesystem;

class Import : public testing::Test {
 protected:
  void SetUp() override { testing_support::write_small_llama(model_); }
  ImportResult import(int64_t context = 0) {
    fs::remove_all(place_ / "run");
    return import_model({.from = model_, .out = place_ / "run", .context = context});
  }
  // Why it is refused, on one line.
  std::string complaint() {
    try {
      import();
    } catch (const InputError& error) {
      EXPECT_FALSE(fs::exists(place_ / "run"));
      EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
      return error.what();
    }
    return "accepted";
  }
  // With an option of config.json at another value.
  std::string complaint_with(const char* key, const Json& value) {
    const std::string before = read_file(model_ / "config.json");
    Json config = Json::parse(before);
    config[key] = value;
    write_file_atomic(model_ / "config.json", config.dump());
    const std::string said = complaint();
    write_file_atomic(model_ / "config.json", before);
    return said;
  }
  // The context of the run that is imported with options of config.json at other values.
  int64_t context_with(const Json& options) {
    const std::string before = read_file(model_ / "config.json");
    Json config = Json::parse(before);
    config.update(options);
    write_file_atomic(model_ / "config.json", config.dump());
    const int64_t context = import().context;
    write_file_atomic(model_ / "config.json", before);
    return context;
  }
  // config.json of the run's export.
  Json exported_config() const {
    fs::remove_all(place_ / "back");
    export_model({.run = place_ / "run", .out = place_ / "back"});
    return Json::parse(read_file(place_ / "back" / "config.json"));
  }
  // Writes a tokenizer with so many tokens.
  void write_tokenizer(int tokens, const std::string& type = "BPE") {
    Json vocabulary = {{"</s>", 0}};
    for (int id = 1; id < tokens; ++id) vocabulary[std::string(1, static_cast<char>('a' + id))] = id;
    const Json json = {{"model", {{"type", type}, {"vocab", vocabulary}, {"merges", Json::array()}}}};
    write_file_atomic(model_ / "tokenizer.json", json.dump());
  }

  const testing_support::TemporaryDirectory place_;
  const fs::path model_ = place_ / "model";
};

TEST_F(Import, RefusesWeightsThatAreNoNumbers) {
  const fs::path file = model_ / "model.safetensors";
  const NamedTensors sound = read_safetensors(file);
  for (const std::string name : {"model.norm.weight", "model.embed_tokens.weight"}) {
    for (const float value : {NAN, INFINITY, -INFINITY}) {
      for (const int64_t place : {0, 3, -1}) {
        NamedTensors tensors = sound;
        tensors[name] = sound.at(name).clone();
        tensors[name].view(-1)[place].fill_(value);
        write_safetensors(file, tensors);
        EXPECT_THAT(complaint(), HasSubstr(fmt::format("model.safetensors: '{}' has values that are not", name)));
      }
    }
  }
}

// A large model takes minutes to read, and then it would be refused.
TEST_F(Import, ATakenNameIsRefusedBeforeTheWeightsAreRead) {
  const fs::path file = model_ / "model.safetensors", taken = place_ / "taken";
  NamedTensors tensors = read_safetensors(file);
  tensors["model.norm.weight"].fill_(NAN);
  write_safetensors(file, tensors);
  fs::create_directory(taken);
  write_file_atomic(taken / "mine", "");
  try {
    import_model({.from = model_, .out = taken});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("is there already, and is not empty"));
  }
}

// A model may be larger than the memory.
TEST_F(Import, HoldsOneParameterAtATime) {
  ModelSettings settings = testing_support::small_llama();
  settings.width = settings.mlp_width = 64;
  settings.layers = 4;
  settings.vocabulary = 1000;
  testing_support::write_small_model(model_, settings);
  const HostMemory memory(1);
  const int64_t parameters = import().parameters;
  const size_t embedding = sizeof(float) * 64 * 1000;  // the largest
  EXPECT_GT(sizeof(float) * static_cast<size_t>(parameters), 2 * embedding);
  EXPECT_GE(memory.bytes().peak, embedding);
  EXPECT_LT(memory.bytes().peak, embedding + 4096);
}

TEST_F(Import, ATokenizerHasNoMoreTokensThanTheModel) {
  write_tokenizer(12);
  EXPECT_EQ(import().tokenizer->kind, "json");
  write_tokenizer(13);
  const ImportResult result = import();
  EXPECT_FALSE(result.tokenizer);
  EXPECT_EQ(result.tokenizer_fault, "it has 13 tokens, and the model has 12");
  EXPECT_TRUE(fs::exists(place_ / "run" / "hugging_face" / "tokenizer.json"));
}

TEST_F(Import, ATokenizerThatGyreLacksKeepsNobodyFromTheModel) {
  write_tokenizer(12, "Unigram");
  const ImportResult result = import();
  EXPECT_FALSE(result.tokenizer);
  EXPECT_THAT(result.tokenizer_fault, HasSubstr((model_ / "tokenizer.json: ").string()));
  EXPECT_THAT(result.tokenizer_fault, HasSubstr("'Unigram'"));
  EXPECT_TRUE(fs::exists(place_ / "run" / "hugging_face" / "tokenizer.json"));
}

TEST_F(Import, ATokenizerJsonThatIsNotReadYieldsToTheModelItWasMadeFrom) {
  if (!has_sentencepiece()) GTEST_SKIP() << "built without sentencepiece";
  std::string model;  // as protobuf writes it
  Json vocabulary;
  const auto add = [&](const std::string& piece, char type) {
    const std::string fields = '\x0a' + std::string(1, static_cast<char>(piece.size())) + piece + '\x18' + type;
    model += '\x0a' + std::string(1, static_cast<char>(fields.size())) + fields;
    vocabulary.push_back(Json::array({piece, 0.0}));
  };
  add("<unk>", 2);
  add("<s>", 3);
  add("</s>", 3);
  add("a", 1);
  write_file_atomic(model_ / "tokenizer.json", Json{{"model", {{"type", "Unigram"}, {"vocab", vocabulary}}}}.dump());
  write_file_atomic(model_ / "tokenizer.model", model);
  const ImportResult result = import();
  EXPECT_EQ(result.tokenizer_fault, "");
  ASSERT_TRUE(result.tokenizer);
  EXPECT_THAT(result.tokenizer->files, ElementsAre("tokenizer.model"));
  EXPECT_TRUE(fs::exists(place_ / "run" / "tokenizer" / "tokenizer.model"));
}

TEST_F(Import, AVocabularyBecomesTheTokenizerOfItsFamily) {
  write_file_atomic(model_ / "vocab.json", R"({"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3})");
  write_file_atomic(model_ / "merges.txt", "#version: 0.2\na b\n");
  EXPECT_EQ(import().tokenizer_fault, "vocab.json of a llama model is not read; save the tokenizer as tokenizer.json");
  ModelSettings settings = testing_support::small_llama();
  settings.kind = "gpt";
  settings.bias = true;
  settings.activation = "gelu";
  testing_support::write_small_model(model_, settings);
  const auto tokenizer = import().tokenizer;
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(tokenizer->kind, "json");
  EXPECT_THAT(tokenizer->files, ElementsAre("vocab.json", "merges.txt"));
  EXPECT_EQ(tokenizer->vocabulary, 4);
  EXPECT_EQ(tokenizer->end_of_document_text, "<|endoftext|>");
  EXPECT_EQ(tokenizer->end_of_document, 3);
  EXPECT_TRUE(fs::exists(place_ / "run" / "hugging_face" / "vocab.json"));
  write_file_atomic(model_ / "merges.txt", "not a merge\n");
  EXPECT_NE(import().tokenizer_fault, "");
  fs::remove(model_ / "merges.txt");
  EXPECT_EQ(import().tokenizer_fault, "");  // the other half alone is no tokenizer

  settings.kind = "bert";
  testing_support::write_small_model(model_, settings);
  write_file_atomic(model_ / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  EXPECT_EQ(import().tokenizer->kind, "json");
}

// WordPiece's tokens in brackets need not be among the added ones.
TEST_F(Import, SpecialTokensAreThoseOfTheTokenizersVocabulary) {
  ModelSettings settings = testing_support::small_llama();
  settings.kind = "bert";
  settings.bias = true;
  settings.activation = "gelu";
  testing_support::write_small_model(model_, settings);
  Json json = {{"added_tokens", Json::array()},
               {"model",
                {{"type", "WordPiece"},
                 {"unk_token", "[UNK]"},
                 {"vocab", {{"[UNK]", 0}, {"a", 1}, {"[CLS]", 2}, {"[SEP]", 3}, {"[MASK]", 4}}}}}};
  const auto imported = [&] {
    write_file_atomic(model_ / "tokenizer.json", json.dump());
    return import();
  };
  const auto used = [&] { return used_tokens(RunDirectory(place_ / "run").load_config().model); };
  const std::map<std::string, int64_t> in_vocabulary = {{"[CLS]", 2}, {"[SEP]", 3}, {"[MASK]", 4}};
  EXPECT_THAT(imported().assumed_tokens, IsEmpty());
  EXPECT_EQ(used(), in_vocabulary);

  json["added_tokens"] = {{{"id", 7}, {"content", "[MASK]"}}};
  EXPECT_THAT(imported().assumed_tokens, IsEmpty());
  EXPECT_EQ(used(), in_vocabulary);
  json["model"]["vocab"].erase("[MASK]");
  EXPECT_THAT(imported().assumed_tokens, IsEmpty());
  EXPECT_EQ(used().at("[MASK]"), 7);

  json["added_tokens"] = Json::array();
  const std::map<std::string, int64_t> last = {{"[CLS]", 9}, {"[SEP]", 10}, {"[MASK]", 11}};
  EXPECT_EQ(imported().assumed_tokens, last);
  EXPECT_EQ(used(), last);
  fs::remove(model_ / "tokenizer.json");
  EXPECT_EQ(import().assumed_tokens, last);
}

TEST_F(Import, NumbersHaveTheRangesOfARunsConfiguration) {
  EXPECT_THAT(complaint_with("rms_norm_eps", 0), HasSubstr("[model.llama] norm_epsilon is 0; give"));
  EXPECT_THAT(complaint_with("rms_norm_eps", 1e300), HasSubstr("norm_epsilon"));
  Json rope = {{"rope_type", "default"}, {"rope_theta", 0}};
  EXPECT_THAT(complaint_with("rope_parameters", rope), HasSubstr("[model.llama] rope_theta is 0; give"));
  rope["rope_theta"] = 1e300;
  EXPECT_THAT(complaint_with("rope_parameters", rope), HasSubstr("rope_theta"));
}

// As transformers reads them. It writes those that are accepted.
TEST_F(Import, NullIsNotAlwaysTheDefault) {
  for (const char* key : {"tie_word_embeddings", "attention_bias", "mlp_bias", "use_sliding_window"}) {
    EXPECT_THAT(complaint_with(key, nullptr), HasSubstr(fmt::format("'{}' must be true or false", key)));
  }
  for (const char* key : {"rope_theta", "rms_norm_eps"}) {
    EXPECT_THAT(complaint_with(key, nullptr), HasSubstr(fmt::format("'{}' must be a number", key)));
  }
  EXPECT_THAT(complaint_with("hidden_act", nullptr), HasSubstr("'hidden_act' is null"));
  EXPECT_THAT(complaint_with("hidden_size", nullptr), HasSubstr("'hidden_size' must be a whole number"));
  for (const char* key : {"num_key_value_heads", "head_dim"}) {
    EXPECT_EQ(complaint_with(key, nullptr), "accepted");
    EXPECT_THAT(complaint_with(key, 0), HasSubstr(fmt::format("'{}' is 0; give 1 or more, or null", key)));
  }
  for (const char* key : {"rope_scaling", "rope_parameters", "sliding_window", "layer_types", "architectures",
                          "quantization_config", "eos_token_id", "pad_token_id", "torch_dtype"}) {
    EXPECT_EQ(complaint_with(key, nullptr), "accepted") << key;
  }

  ModelSettings settings = testing_support::small_llama();
  settings.own.get<LlamaSettings>().qkv_bias = true;  // a Qwen2, for which a missing number is another
  testing_support::write_small_model(model_, settings);
  EXPECT_EQ(complaint_with("num_key_value_heads", nullptr), "accepted");

  settings = testing_support::small_llama();
  settings.kind = "gpt";
  settings.bias = true;
  settings.activation = "gelu";
  testing_support::write_small_model(model_, settings);
  EXPECT_THAT(complaint_with("scale_attn_weights", nullptr), HasSubstr("must be true or false"));
  EXPECT_THAT(complaint_with("layer_norm_epsilon", nullptr), HasSubstr("is null, which gyre does not support"));
  EXPECT_THAT(complaint_with("activation_function", nullptr), HasSubstr("must be a string"));
  EXPECT_EQ(complaint_with("summary_activation", nullptr), "accepted");
  EXPECT_THAT(complaint_with("n_inner", nullptr), HasSubstr("by config.json it should be"));  // four times the width

  settings.kind = "bert";
  testing_support::write_small_model(model_, settings);
  EXPECT_THAT(complaint_with("position_embedding_type", nullptr), HasSubstr("is null, which gyre does not support"));
  EXPECT_EQ(complaint_with("classifier_dropout", nullptr), "accepted");
}

TEST_F(Import, PrunedHeadsAreRefused) {
  EXPECT_THAT(complaint_with("pruned_heads", {{"0", {1}}}),
              HasSubstr("'pruned_heads' is {\"0\":[1]}, which gyre does not"));
  EXPECT_EQ(complaint_with("pruned_heads", Json::object()), "accepted");
}

// Versions of transformers differ on which of two counts.
TEST_F(Import, RopeScalingHasNoThetaOfItsOwn) {
  const Json rope = {{"rope_type", "default"}, {"rope_theta", 77.0}};
  EXPECT_THAT(complaint_with("rope_scaling", rope),
              HasSubstr("'rope_scaling': its 'rope_theta' is 77, and the one outside it is 10000; make both the same"));
  EXPECT_EQ(complaint_with("rope_parameters", rope), "accepted");
  Json config = Json::parse(read_file(model_ / "config.json"));
  config["rope_theta"] = 77;
  config.erase("rope_parameters");
  write_file_atomic(model_ / "config.json", config.dump());
  EXPECT_EQ(complaint_with("rope_scaling", rope), "accepted");
  config.erase("rope_theta");
  write_file_atomic(model_ / "config.json", config.dump());
  EXPECT_THAT(complaint_with("rope_scaling", rope), HasSubstr("is 10000, being missing; make"));
}

TEST_F(Import, AStretchByOneIsNone) {
  Json rope = {{"rope_type", "linear"}, {"factor", 1.0}};
  const auto imported_kind = [&] {
    EXPECT_EQ(complaint_with("rope_parameters", rope), "accepted");
    const ModelSettings model = RunDirectory(place_ / "run").load_config().model;
    return model.own.of_kind("llama").get<LlamaSettings>().rope_scaling.kind;
  };
  EXPECT_EQ(imported_kind(), "none");
  rope["rope_type"] = "llama3";
  EXPECT_THAT(complaint_with("rope_parameters", rope), HasSubstr("has no 'low_freq_factor'"));
  rope.update({{"low_freq_factor", 1.0}, {"high_freq_factor", 4.0}, {"original_max_position_embeddings", 8}});
  EXPECT_EQ(imported_kind(), "none");
  rope["factor"] = 2;
  EXPECT_EQ(imported_kind(), "llama3");
}

TEST_F(Import, Gpt2sSizesHaveTwoNames) {
  ModelSettings settings = testing_support::small_llama();
  settings.kind = "gpt";
  settings.bias = true;
  settings.activation = "gelu";
  testing_support::write_small_model(model_, settings);
  const Json config = Json::parse(read_file(model_ / "config.json"));
  const std::pair<const char*, const char*> names[] = {{"n_layer", "num_hidden_layers"},
                                                       {"n_embd", "hidden_size"},
                                                       {"n_head", "num_attention_heads"},
                                                       {"n_positions", "max_position_embeddings"}};
  Json renamed = config;
  for (const auto& [name, other] : names) {
    EXPECT_EQ(complaint_with(other, config[name]), "accepted");
    const int64_t more = config[name].get<int64_t>() + 1;
    EXPECT_THAT(complaint_with(other, more), HasSubstr(fmt::format("'{}' is {} and '{}', which means the same, is {}",
                                                                   name, more - 1, other, more)));
    EXPECT_THAT(complaint_with(other, nullptr), HasSubstr("must be a whole number"));
    renamed[other] = renamed[name];
    renamed.erase(name);
  }
  write_file_atomic(model_ / "config.json", renamed.dump());
  EXPECT_EQ(complaint(), "accepted");
  const ModelSettings read = RunDirectory(place_ / "run").load_config().model;
  EXPECT_EQ(read.heads, settings.heads);
  export_model({.run = place_ / "run", .out = place_ / "back"});
  EXPECT_EQ(Json::parse(read_file(place_ / "back" / "config.json")), config);
}

TEST_F(Import, PositionsMayBeStretched) {
  const Json full = {{"rope_type", "llama3"},
                     {"factor", 8.0},
                     {"low_freq_factor", 1.0},
                     {"high_freq_factor", 4.0},
                     {"original_max_position_embeddings", 8192}};
  const RopeScaling read = {
      .kind = "llama3", .factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_context = 8192};
  const auto scaling = [&] {
    const auto settings = RunDirectory(place_ / "run").load_config().model.own.of_kind("llama").get<LlamaSettings>();
    return settings.rope_scaling;
  };
  Json config = Json::parse(read_file(model_ / "config.json"));
  const auto complaint_of = [&](const Json& old, const Json& newer) {
    config["rope_scaling"] = old;
    config["rope_parameters"] = newer;
    write_file_atomic(model_ / "config.json", config.dump());
    return complaint();
  };
  // The older field, the newer one, and both, as an export writes them.
  EXPECT_EQ(complaint_of(full, nullptr), "accepted");
  EXPECT_EQ(scaling(), read);
  EXPECT_EQ(complaint_of(nullptr, full), "accepted");
  EXPECT_EQ(scaling(), read);
  fs::remove_all(place_ / "back");
  export_model({.run = place_ / "run", .out = place_ / "back"});
  const Json written = Json::parse(read_file(place_ / "back" / "config.json"));
  EXPECT_EQ(written["rope_scaling"], full);
  Json with_theta = full;
  with_theta["rope_theta"] = 10000.0;
  EXPECT_EQ(written["rope_parameters"], with_theta);
  EXPECT_EQ(complaint_of(full, with_theta), "accepted");
  EXPECT_EQ(complaint_of({{"type", "linear"}, {"factor", 2}}, nullptr), "accepted");
  EXPECT_EQ(scaling().kind, "linear");
  EXPECT_EQ(scaling().factor, 2);

  EXPECT_THAT(complaint_of(full, {{"rope_type", "default"}}),
              HasSubstr("'rope_parameters': stretches positions otherwise"));
  Json both = full;
  both["type"] = "linear";
  EXPECT_THAT(complaint_of(both, nullptr),
              HasSubstr("'rope_type' is \"llama3\" and 'type' is \"linear\"; leave one out"));
  for (const char* key : {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
    Json lacking = full;
    lacking.erase(key);
    EXPECT_THAT(complaint_of(lacking, nullptr), HasSubstr(key));
  }
  Json upside_down = full;
  upside_down["low_freq_factor"] = 4.0;
  EXPECT_THAT(complaint_of(upside_down, nullptr), HasSubstr("rope_low_freq_factor = 4 is not below"));
  EXPECT_THAT(complaint_of({{"rope_type", "yarn"}, {"factor", 2}}, nullptr),
              HasSubstr("'rope_type' is \"yarn\"; gyre has default, linear, llama3"));
}

// gyre has no windows, and a sequence that fits the window needs none.
TEST_F(Import, AMistralsWindowIsItsLongestSequence) {
  Json config = Json::parse(read_file(model_ / "config.json"));
  const int64_t length = config["max_position_embeddings"].get<int64_t>(), window = length / 2;
  config["model_type"] = "mistral";
  config["architectures"] = {"MistralForCausalLM"};
  write_file_atomic(model_ / "config.json", config.dump());
  EXPECT_EQ(context_with({{"sliding_window", nullptr}}), length);
  EXPECT_TRUE(exported_config().at("sliding_window").is_null());
  EXPECT_EQ(context_with({{"sliding_window", length + 1}}), length);
  EXPECT_EQ(context_with({{"sliding_window", window}}), window);
  const Json written = exported_config();
  EXPECT_EQ(written["model_type"], "mistral");
  EXPECT_EQ(written["architectures"], Json({"MistralForCausalLM"}));
  EXPECT_EQ(written["sliding_window"], window);
  EXPECT_EQ(written["max_position_embeddings"], length);
  EXPECT_THAT(complaint_with("sliding_window", 0), HasSubstr("'sliding_window' is 0; give 1 or more, or null"));

  config["max_position_embeddings"] = 8192;  // without the field the window is 4096
  write_file_atomic(model_ / "config.json", config.dump());
  EXPECT_EQ(import(4096).context, 4096);
  try {
    import(4097);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.what(), fmt::format("--context is 4097, and the model of {} takes sequences of up to 4096 tokens; "
                                        "give no more",
                                        (model_ / "config.json").string()));
  }
}

TEST_F(Import, AQwensWindowIsItsLongestSequenceIfItIsUsed) {
  ModelSettings settings = testing_support::small_llama();
  settings.own.get<LlamaSettings>().qkv_bias = true;
  testing_support::write_small_model(model_, settings);
  const int64_t length = settings.context, window = length / 2;
  EXPECT_EQ(context_with({{"use_sliding_window", false}, {"sliding_window", window}}), length);
  EXPECT_EQ(context_with({{"use_sliding_window", true}, {"sliding_window", window}}), window);
  EXPECT_EQ(exported_config()["use_sliding_window"], true);
  EXPECT_EQ(exported_config()["sliding_window"], window);
  const Json layers = {"full_attention", "sliding_attention"};
  EXPECT_EQ(context_with({{"layer_types", layers}, {"sliding_window", window}}), window);
  EXPECT_EQ(exported_config()["layer_types"], layers);
  EXPECT_THAT(complaint_with("layer_types", {"full_attention", "linear_attention"}),
              HasSubstr("'layer_types' has other layers than full_attention and sliding_attention"));

  // It was trained on longer sequences since, so without windows.
  settings.context = window + 1;
  nlohmann::ordered_json config = {{"use_sliding_window", true}, {"sliding_window", window}, {"layer_types", layers}};
  write_windows(settings, config);
  EXPECT_EQ(config["use_sliding_window"], false);
  EXPECT_FALSE(config.contains("layer_types"));

  testing_support::write_small_llama(model_);
  EXPECT_THAT(complaint_with("layer_types", layers), HasSubstr("sliding windows, which a Llama does not have"));
}

TEST_F(Import, PositionsThatAreStretchedInAWayThatIsNotSaidAreRefused) {
  EXPECT_THAT(complaint_with("rope_scaling", {{"factor", 2.0}}),
              HasSubstr((model_ / "config.json: 'rope_scaling': has no 'rope_type'").string()));
  EXPECT_THAT(complaint_with("rope_scaling", Json::object()), HasSubstr("has no 'rope_type'"));
  EXPECT_EQ(complaint_with("rope_scaling", {{"type", "default"}}), "accepted");
}

// A header that says another type of the same size.
TEST_F(Import, TensorsThatAreLeftOutMayHaveAnyType) {
  const auto rewrite = [&](const std::string& from, const std::string& to) {
    std::string file = read_file(model_ / "model.safetensors");
    const size_t at = file.find(from);
    ASSERT_NE(at, std::string::npos);
    file.replace(at, from.size(), to);
    write_file_atomic(model_ / "model.safetensors", file);
  };
  testing_support::write_small_llama(model_, {{"rotary_emb.inv_freq", at::zeros({3}, at::kByte)}});
  rewrite("\"U8\"", "\"I8\"");
  EXPECT_THAT(import().left_out, ElementsAre("rotary_emb.inv_freq"));
  rewrite("\"F32\"", "\"U32\"");
  EXPECT_THAT(complaint(), HasSubstr("has the type U32; F32, BF16 and F16 are read"));
}

TEST_F(Import, PipesAreNotWaitedFor) {
  for (const char* name :
       {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.json", "vocab.txt"}) {
    testing_support::write_small_llama(model_);
    fs::remove(model_ / name);
    ASSERT_EQ(::mkfifo((model_ / name).c_str(), 0600), 0);
    EXPECT_THAT(complaint(), HasSubstr("is not a regular file")) << name;
    fs::remove(model_ / name);
  }
}

// As by programs that write only what transformers reads.
TEST_F(Import, AnIndexNeedsNoMetadata) {
  fs::rename(model_ / "model.safetensors", model_ / "all.safetensors");
  Json index = {{"weight_map", Json::object()}};
  const SafetensorsFile file(model_ / "all.safetensors");
  for (const TensorEntry& tensor : file.tensors()) {
    index["weight_map"][tensor.name] = "all.safetensors";
  }
  for (const Json& metadata : {Json(), Json::object(), Json{{"total_size", 1.5e9}}}) {
    write_file_atomic(model_ / "model.safetensors.index.json", index.dump());
    EXPECT_NO_THROW(import());
    index["metadata"] = metadata;
  }
}

TEST_F(Import, AnIndexNamesFilesOfOneLine) {
  fs::remove(model_ / "model.safetensors");
  Json index = {{"metadata", {{"total_size", 1}}}, {"weight_map", Json::object()}};
  write_file_atomic(model_ / "model.safetensors.index.json", index.dump());
  EXPECT_THAT(complaint(), HasSubstr("index.json: names no tensors"));
  index["weight_map"] = {{"a", "b\nc.safetensors"}};
  write_file_atomic(model_ / "model.safetensors.index.json", index.dump());
  EXPECT_THAT(complaint(), HasSubstr("'b\\nc.safetensors' is not the name of a file beside it"));
}

}  // namespace
}  // namespace gyre
