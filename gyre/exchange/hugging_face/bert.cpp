// BERT with the heads that it was pre-trained with: masked tokens, and optionally the order of two segments.
#include "gyre/exchange/hugging_face/activations.h"
#include "gyre/exchange/hugging_face/family.h"
#include "gyre/model/settings/bert_settings.h"

namespace gyre {
namespace {

constexpr double kEpsilon = 1e-12;

// A dense layer or a norm: weight and bias.
void add(std::vector<TensorPair>& pairs, const char* weight, const char* our_weight, const char* bias,
         const char* our_bias, int part = TensorPair::kWhole) {
  pairs.push_back({weight, our_weight, part});
  pairs.push_back({bias, our_bias, part});
}

std::vector<TensorPair> tensors() {
  std::vector<TensorPair> pairs = {
      {"bert.embeddings.word_embeddings.weight", "embedding.token.weight"},
      {"bert.embeddings.position_embeddings.weight", "embedding.position.weight"},
      {"bert.embeddings.token_type_embeddings.weight", "embedding.type.weight"},
      {"cls.predictions.bias", "head.output.bias"},
      {.theirs = "cls.predictions.decoder.bias", .ours = "head.output.bias", .use = TensorPair::Use::Copy},
      {"cls.predictions.decoder.weight", "head.output.weight"},
      {.theirs = "cls.predictions.decoder.weight", .ours = "embedding.token.weight", .use = TensorPair::Use::ReadCopy},
  };
  add(pairs, "bert.embeddings.LayerNorm.weight", "embedding.norm.weight", "bert.embeddings.LayerNorm.bias",
      "embedding.norm.bias");
  add(pairs, "bert.encoder.layer.{}.attention.self.query.weight", "blocks.{}.attention.qkv.weight",
      "bert.encoder.layer.{}.attention.self.query.bias", "blocks.{}.attention.qkv.bias", 0);
  add(pairs, "bert.encoder.layer.{}.attention.self.key.weight", "blocks.{}.attention.qkv.weight",
      "bert.encoder.layer.{}.attention.self.key.bias", "blocks.{}.attention.qkv.bias", 1);
  add(pairs, "bert.encoder.layer.{}.attention.self.value.weight", "blocks.{}.attention.qkv.weight",
      "bert.encoder.layer.{}.attention.self.value.bias", "blocks.{}.attention.qkv.bias", 2);
  add(pairs, "bert.encoder.layer.{}.attention.output.dense.weight", "blocks.{}.attention.projection.weight",
      "bert.encoder.layer.{}.attention.output.dense.bias", "blocks.{}.attention.projection.bias");
  add(pairs, "bert.encoder.layer.{}.attention.output.LayerNorm.weight", "blocks.{}.norm1.weight",
      "bert.encoder.layer.{}.attention.output.LayerNorm.bias", "blocks.{}.norm1.bias");
  add(pairs, "bert.encoder.layer.{}.intermediate.dense.weight", "blocks.{}.mlp.in.weight",
      "bert.encoder.layer.{}.intermediate.dense.bias", "blocks.{}.mlp.in.bias");
  add(pairs, "bert.encoder.layer.{}.output.dense.weight", "blocks.{}.mlp.out.weight",
      "bert.encoder.layer.{}.output.dense.bias", "blocks.{}.mlp.out.bias");
  add(pairs, "bert.encoder.layer.{}.output.LayerNorm.weight", "blocks.{}.norm2.weight",
      "bert.encoder.layer.{}.output.LayerNorm.bias", "blocks.{}.norm2.bias");
  add(pairs, "cls.predictions.transform.dense.weight", "head.transform.weight", "cls.predictions.transform.dense.bias",
      "head.transform.bias");
  add(pairs, "cls.predictions.transform.LayerNorm.weight", "head.transform.norm.weight",
      "cls.predictions.transform.LayerNorm.bias", "head.transform.norm.bias");
  add(pairs, "bert.pooler.dense.weight", "head.pooler.weight", "bert.pooler.dense.bias", "head.pooler.bias");
  add(pairs, "cls.seq_relationship.weight", "head.order.weight", "cls.seq_relationship.bias", "head.order.bias");
  return pairs;
}

void read(ConfigFields& config, ModelSettings& settings) {
  settings.layers = config.whole("num_hidden_layers");
  settings.width = config.whole("hidden_size");
  settings.heads = config.whole("num_attention_heads");
  settings.context = config.whole("max_position_embeddings");
  settings.mlp_width = config.whole("intermediate_size");
  settings.activation = read_activation(config, "hidden_act", "gelu");
  config.only("layer_norm_eps", kEpsilon);
  config.only("type_vocab_size", 2);
  config.only("position_embedding_type", "absolute");
  config.only("is_decoder", false);
  config.only("add_cross_attention", false);
}

void read_names(const std::set<std::string>& names, ModelSettings& settings) {
  settings.own.get<BertSettings>().sentence_order = names.count("cls.seq_relationship.weight") > 0;
}

std::string misfit(const ModelSettings& settings) {
  if (settings.own.of_kind("bert").get<BertSettings>().norm != "post") {
    return "[model.bert] norm = \"pre\", and their BERT has norms after its branches";
  }
  return "";
}

void write(const ModelSettings& settings, nlohmann::ordered_json& config) {
  config["vocab_size"] = settings.vocabulary;
  config["num_hidden_layers"] = settings.layers;
  config["hidden_size"] = settings.width;
  config["num_attention_heads"] = settings.heads;
  config["max_position_embeddings"] = settings.context;
  config["intermediate_size"] = settings.mlp_width;
  config["hidden_act"] = their_activation(settings.activation);
  config["layer_norm_eps"] = kEpsilon;
  config["type_vocab_size"] = 2;
  config["position_embedding_type"] = "absolute";
  config["hidden_dropout_prob"] = settings.dropout;
  config["attention_probs_dropout_prob"] = 0.0;  // gyre drops no attention probabilities
  if (settings.own.of_kind("bert").get<BertSettings>().sentence_order) config["architectures"] = {"BertForPreTraining"};
}

}  // namespace

Family bert_family() {
  return {.model_type = "bert",
          .architectures = {"BertForMaskedLM", "BertForPreTraining"},
          .kind = "bert",
          .prefix = "bert.",
          .tied_unless_said = true,
          .tensors = tensors(),
          .buffers = {".embeddings.position_ids"},
          .read = read,
          .read_names = read_names,
          .misfit = misfit,
          .write = write};
}

}  // namespace gyre
