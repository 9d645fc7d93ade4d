// Every family's table against the models that gyre builds, and config.json out and in again.
#include "gyre/exchange/hugging_face/correspondence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "gyre/core/error.h"
#include "gyre/exchange/hugging_face/config_json.h"
#include "gyre/exchange/own_tensors.h"
#include "gyre/model/settings/bert_settings.h"
#include "gyre/model/settings/llama_settings.h"
#include "gyre/tensors/shape.h"

namespace gyre {
namespace {

using testing::HasSubstr;

ModelSettings sizes(const std::string& kind) {
  ModelSettings settings;
  settings.kind = kind;
  settings.layers = 2;
  settings.width = 24;
  settings.heads = 6;
  settings.context = 16;
  settings.vocabulary = 40;
  settings.mlp_width = 20;
  return settings;
}

ModelSettings llama(bool qkv_bias) {
  ModelSettings settings = sizes("llama");
  settings.bias = false;
  settings.activation = "silu";
  auto& own = settings.own.get<LlamaSettings>();
  own.key_value_heads = 2;
  own.qkv_bias = qkv_bias;
  return settings;
}

ModelSettings qwen3() {
  ModelSettings settings = llama(false);
  auto& own = settings.own.get<LlamaSettings>();
  own.qk_norm = true;
  own.head_size = 10;
  return settings;
}

ModelSettings tied(ModelSettings settings) {
  settings.tie = true;
  return settings;
}

ModelSettings gpt(bool bias) {
  ModelSettings settings = sizes("gpt");
  settings.activation = "gelu-tanh";
  settings.bias = bias;
  return settings;
}

ModelSettings bert(bool sentence_order) {
  ModelSettings settings = sizes("bert");
  settings.own.get<BertSettings>().sentence_order = sentence_order;
  return settings;
}

std::vector<ModelSettings> all_models() {
  return {llama(false), llama(true),       qwen3(),          gpt(true),        gpt(false),   bert(false),
          bert(true),   tied(llama(true)), tied(gpt(false)), tied(bert(true)), tied(qwen3())};
}

std::map<std::string, Counterpart> by_name(const ModelSettings& settings) {
  std::map<std::string, Counterpart> found;
  for (const Counterpart& one : correspondence(family_of(settings), settings.layers, own_tensors(settings))) {
    found[one.theirs] = one;
  }
  return found;
}

TEST(Correspondence, EveryElementOfOursIsInOneTensorOfTheirs) {
  for (const ModelSettings& settings : all_models()) {
    std::map<std::string, int64_t> theirs;
    for (const auto& [name, one] : by_name(settings)) {
      if (one.use == TensorPair::Use::Own && !one.ours.empty()) theirs[one.ours] += numel(one.shape);
    }
    for (const OwnTensor& tensor : own_tensors(settings)) {
      EXPECT_EQ(theirs[tensor.name], numel(tensor.shape)) << settings.kind << ": " << tensor.name;
    }
  }
}

TEST(Correspondence, PartsOfAFusedMatrixFollowEachOther) {
  const auto found = by_name(llama(true));
  const std::string attention = "model.layers.1.self_attn.";
  EXPECT_EQ(found.at(attention + "q_proj.weight").first_row, 0);
  EXPECT_EQ(found.at(attention + "k_proj.weight").first_row, 24);
  EXPECT_EQ(found.at(attention + "v_proj.weight").first_row, 32);
  EXPECT_EQ(found.at(attention + "v_proj.weight").shape, (std::vector<int64_t>{8, 24}));
  EXPECT_EQ(found.at(attention + "v_proj.bias").first_row, 32);
  EXPECT_EQ(found.at(attention + "v_proj.bias").shape, (std::vector<int64_t>{8}));
  EXPECT_EQ(found.at("model.layers.1.mlp.up_proj.weight").first_row, 20);
}

TEST(Correspondence, MatricesOfGpt2AreTransposedAndBiasesThatAreMissingAreZeros) {
  const auto found = by_name(gpt(false));
  EXPECT_TRUE(found.at("transformer.h.1.mlp.c_fc.weight").transposed);
  EXPECT_EQ(found.at("transformer.h.1.mlp.c_fc.weight").shape, (std::vector<int64_t>{24, 20}));
  EXPECT_FALSE(found.at("transformer.wte.weight").transposed);
  EXPECT_EQ(found.at("transformer.h.1.mlp.c_fc.bias").ours, "");
  EXPECT_EQ(found.at("transformer.h.1.mlp.c_fc.bias").shape, (std::vector<int64_t>{20}));
  EXPECT_EQ(found.at("transformer.h.0.attn.c_attn.bias").shape, (std::vector<int64_t>{72}));
  EXPECT_EQ(by_name(llama(false)).count("model.layers.0.self_attn.q_proj.bias"), 0U);
}

TEST(Correspondence, TheHeadOfATiedModelIsItsEmbedding) {
  const auto head = by_name(tied(llama(false))).at("lm_head.weight");
  EXPECT_EQ(head.ours, "embedding.token.weight");
  EXPECT_EQ(head.use, TensorPair::Use::ReadCopy);
  EXPECT_EQ(by_name(llama(false)).at("lm_head.weight").ours, "head.output.weight");
  const auto found = by_name(tied(bert(false)));
  EXPECT_EQ(found.at("cls.predictions.decoder.bias").use, TensorPair::Use::Copy);
  EXPECT_EQ(found.at("cls.predictions.decoder.weight").use, TensorPair::Use::ReadCopy);
}

TEST(Correspondence, OldAndBareNamesAreUnderstood) {
  const std::set<std::string> known = {"bert.embeddings.LayerNorm.weight", "cls.predictions.bias"};
  const ModelSettings settings = bert(false);
  const Family& family = family_of(settings);
  EXPECT_EQ(canonical_name(family, known, "bert.embeddings.LayerNorm.gamma"), "bert.embeddings.LayerNorm.weight");
  EXPECT_EQ(canonical_name(family, known, "embeddings.LayerNorm.weight"), "bert.embeddings.LayerNorm.weight");
  EXPECT_EQ(canonical_name(family, known, "cls.predictions.bias"), "cls.predictions.bias");
  EXPECT_EQ(canonical_name(family, known, "pooler.bias"), "pooler.bias");
  EXPECT_TRUE(is_buffer(family, "embeddings.position_ids"));
  EXPECT_FALSE(is_buffer(family, "embeddings.position_embeddings.weight"));
}

TEST(ConfigJson, WhatIsWrittenReadsBackTheSame) {
  for (const ModelSettings& settings : all_models()) {
    const Family& family = family_of(settings);
    const std::string text = to_config_json(family, settings, "float32", std::nullopt);
    const DescribedModel back = parse_config_json(text, "config.json");
    EXPECT_EQ(back.family, &family);
    ModelSettings expected = settings;
    expected.bias = settings.kind != "llama";                         // GPT-2's are zeros
    if (settings.kind == "bert") expected.own = ModelSettings().own;  // the tensors' names say it
    EXPECT_TRUE(back.settings == expected) << text;
    EXPECT_THAT(text, HasSubstr(settings.tie ? "\"tie_word_embeddings\": true" : "\"tie_word_embeddings\": false"));
  }
}

TEST(ConfigJson, WhatAModelCameWithStays) {
  const std::string earlier =
      R"({"model_type": "llama", "eos_token_id": 7, "hidden_size": 1, "transformers_version": "4", "dtype": "float16"})";
  const ModelSettings settings = llama(false);
  const auto json = nlohmann::json::parse(to_config_json(family_of(settings), settings, "bfloat16", earlier));
  EXPECT_EQ(json.at("eos_token_id"), 7);
  EXPECT_EQ(json.at("hidden_size"), 24);
  EXPECT_EQ(json.at("torch_dtype"), "bfloat16");
  EXPECT_FALSE(json.contains("transformers_version"));
  EXPECT_FALSE(json.contains("dtype"));
}

TEST(ConfigJson, ALlamaKeepsTheLengthThatItCameWith) {
  const ModelSettings settings = llama(false);
  const auto written = [&](int64_t length) {
    const auto earlier = nlohmann::json({{"model_type", "llama"}, {"max_position_embeddings", length}}).dump();
    const auto json = nlohmann::json::parse(to_config_json(family_of(settings), settings, "float32", earlier));
    return json.at("max_position_embeddings").get<int64_t>();
  };
  EXPECT_EQ(written(131072), 131072);
  EXPECT_EQ(written(4), 16);  // the run took longer ones
}

TEST(ConfigJson, RotaryPositionsOfNewerConfigurationsAreRead) {
  const ModelSettings settings = llama(false);
  auto json = nlohmann::json::parse(to_config_json(family_of(settings), settings, "float32", std::nullopt));
  json.erase("rope_theta");
  json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 777.0}};
  const DescribedModel model = parse_config_json(json.dump(), "x");
  EXPECT_EQ(model.settings.own.of_kind("llama").get<LlamaSettings>().rope_theta, 777.0);
}

TEST(Families, AModelThatTheyLackIsRefused) {
  ModelSettings settings = bert(false);
  settings.own.get<BertSettings>().norm = "pre";
  EXPECT_THROW(family_of(settings), InputError);
  settings = qwen3();
  settings.own.get<LlamaSettings>().qkv_bias = true;
  EXPECT_THROW(family_of(settings), InputError);
  EXPECT_EQ(family_of(qwen3()).model_type, "qwen3");
  EXPECT_EQ(family_of(llama(true)).model_type, "qwen2");
  EXPECT_EQ(family_of(llama(false)).model_type, "llama");
}

}  // namespace
}  // namespace gyre
