#include "gyre/exchange/hugging_face/llama_parts.h"

#include <fmt/format.h>

#include <string_view>

#include "gyre/model/settings/llama_settings.h"

namespace gyre {
namespace {

constexpr double kDefaultTheta = 10000;

// 0 if the field is null: the number follows from others.
int64_t whole_unless_null(ConfigFields& config, const char* key, int64_t if_missing) {
  if (config.find(key) != nullptr && config.whole(key) == 0) {
    config.fail(fmt::format("'{}' is 0; give 1 or more, or null", key));
  }
  return config.whole(key, if_missing, 0);
}

// rope_theta, which newer configurations have in rope_parameters. Scaled rotary positions are refused, and so is a
// rope_theta in rope_scaling if it is another: version 4 of transformers ignores it, version 5 takes it.
double read_theta(ConfigFields& config) {
  double theta = config.number("rope_theta", kDefaultTheta);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const nlohmann::json* const found = config.find(key);
    if (found == nullptr) continue;
    ConfigFields rope(*found, config.origin_of(key));
    // transformers has no default here.
    const bool said = rope.find("rope_type") != nullptr || rope.find("type") != nullptr;
    if (key == std::string_view("rope_scaling") && !said) rope.fail("has no 'rope_type'");
    rope.only("rope_type", "default");
    rope.only("type", "default");
    rope.only("partial_rotary_factor", 1.0);
    const double inner = rope.number("rope_theta", theta);
    if (key == std::string_view("rope_scaling") && inner != theta) {
      rope.fail(fmt::format("its 'rope_theta' is {}, and the one outside it is {}{}; make both the same", inner, theta,
                            config.has("rope_theta") ? "" : ", being missing"));
    }
    theta = inner;
  }
  config.only("partial_rotary_factor", 1.0);
  return theta;
}

// Throws InputError if the attention of any layer, by "layer_types", is limited to a window.
void refuse_windows(ConfigFields& config) {
  const nlohmann::json* const types = config.find("layer_types");
  if (types == nullptr) return;
  if (!types->is_array()) config.fail("'layer_types' must be a list");
  for (const nlohmann::json& type : *types) {
    if (type != "full_attention") config.fail("'layer_types' has sliding windows, which gyre does not have");
  }
}

}  // namespace

std::vector<TensorPair> llama_tensors() {
  return {
      {"model.embed_tokens.weight", "embedding.token.weight"},
      {"model.layers.{}.input_layernorm.weight", "blocks.{}.norm1.weight"},
      {"model.layers.{}.self_attn.q_proj.weight", "blocks.{}.attention.qkv.weight", 0},
      {"model.layers.{}.self_attn.k_proj.weight", "blocks.{}.attention.qkv.weight", 1},
      {"model.layers.{}.self_attn.v_proj.weight", "blocks.{}.attention.qkv.weight", 2},
      {"model.layers.{}.self_attn.q_proj.bias", "blocks.{}.attention.qkv.bias", 0},
      {"model.layers.{}.self_attn.k_proj.bias", "blocks.{}.attention.qkv.bias", 1},
      {"model.layers.{}.self_attn.v_proj.bias", "blocks.{}.attention.qkv.bias", 2},
      {"model.layers.{}.self_attn.q_norm.weight", "blocks.{}.attention.q_norm.weight"},
      {"model.layers.{}.self_attn.k_norm.weight", "blocks.{}.attention.k_norm.weight"},
      {"model.layers.{}.self_attn.o_proj.weight", "blocks.{}.attention.projection.weight"},
      {"model.layers.{}.post_attention_layernorm.weight", "blocks.{}.norm2.weight"},
      {"model.layers.{}.mlp.gate_proj.weight", "blocks.{}.mlp.in.weight", 0},
      {"model.layers.{}.mlp.up_proj.weight", "blocks.{}.mlp.in.weight", 1},
      {"model.layers.{}.mlp.down_proj.weight", "blocks.{}.mlp.out.weight"},
      {"model.norm.weight", "head.norm.weight"},
      {"lm_head.weight", "head.output.weight"},
      {.theirs = "lm_head.weight", .ours = "embedding.token.weight", .use = TensorPair::Use::ReadCopy},
  };
}

void read_llama_parts(ConfigFields& config, const UsualHeads& usual, ModelSettings& settings) {
  settings.layers = config.whole("num_hidden_layers");
  settings.width = config.whole("hidden_size");
  settings.heads = config.whole("num_attention_heads");
  settings.context = config.whole("max_position_embeddings");
  settings.mlp_width = config.whole("intermediate_size");
  settings.activation = "silu";
  settings.bias = false;
  config.only("hidden_act", "silu");
  config.only("mlp_bias", false);
  config.only("use_sliding_window", false);
  refuse_windows(config);

  auto& own = settings.own.get<LlamaSettings>();
  own.key_value_heads = whole_unless_null(config, "num_key_value_heads", usual.key_value_heads);
  if (own.key_value_heads == 0) own.key_value_heads = settings.heads;
  own.head_size = whole_unless_null(config, "head_dim", usual.head_size);
  if (own.head_size * settings.heads == settings.width) own.head_size = 0;  // the default
  own.rope_theta = read_theta(config);
  own.norm_epsilon = config.number("rms_norm_eps", 1e-6);
}

void write_llama_parts(const ModelSettings& settings, nlohmann::ordered_json& config) {
  const auto own = settings.own.of_kind("llama").get<LlamaSettings>();
  config["vocab_size"] = settings.vocabulary;
  config["num_hidden_layers"] = settings.layers;
  config["hidden_size"] = settings.width;
  config["num_attention_heads"] = settings.heads;
  config["num_key_value_heads"] = key_value_heads(own, settings.heads);
  config["head_dim"] = head_size(own, settings.width, settings.heads);
  // A model keeps the length that it came with, since a run may have trained on shorter sequences.
  const auto came_with = config.find("max_position_embeddings");
  const bool longer = came_with != config.end() && came_with->is_number() && *came_with > settings.context;
  if (!longer) config["max_position_embeddings"] = settings.context;
  config["intermediate_size"] = settings.mlp_width;
  config["hidden_act"] = "silu";
  config["rms_norm_eps"] = own.norm_epsilon;
  config["attention_dropout"] = 0.0;
  config["rope_theta"] = own.rope_theta;
  config["rope_scaling"] = nullptr;
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", own.rope_theta}};  // for newer versions
}

}  // namespace gyre
