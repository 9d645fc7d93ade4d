#include "gyre/exchange/hugging_face/llama_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "gyre/core/text.h"
#include "gyre/model/settings/llama_settings.h"

namespace gyre {
namespace {

constexpr double kDefaultTheta = 10000;
constexpr int64_t kUsualWindow = 4096;  // of a config.json without the field; null: none

// 0 if the field is null: the number follows from others.
int64_t whole_unless_null(ConfigFields& config, const char* key, int64_t if_missing) {
  if (config.find(key) != nullptr && config.whole(key) == 0) {
    config.fail(fmt::format("'{}' is 0; give 1 or more, or null", key));
  }
  return config.whole(key, if_missing, 0);
}

// "type" is the older name of "rope_type". A table that says neither is refused in rope_scaling, where transformers has
// no default.
std::string rope_type(ConfigFields& rope, bool needed) {
  const std::string type = rope.word("rope_type", ""), old = rope.word("type", "");
  if (!type.empty() && !old.empty() && type != old) {
    rope.fail(
        fmt::format("'rope_type' is \"{}\" and 'type' is \"{}\"; leave one out", printable(type), printable(old)));
  }
  if (type.empty() && old.empty() && needed) rope.fail("has no 'rope_type'");
  return !type.empty() ? type : !old.empty() ? old : "default";
}

double factor_of(ConfigFields& rope, const char* key) {
  if (!rope.has(key)) rope.fail(fmt::format("has no '{}', which its 'rope_type' needs", key));
  return rope.number(key, 1);
}

RopeScaling read_scaling(ConfigFields& rope, bool needs_type) {
  RopeScaling scaling;
  const std::string type = rope_type(rope, needs_type);
  if (type == "default") return scaling;
  scaling.kind = type;
  if (type != "linear" && type != "llama3") {
    rope.fail(fmt::format("'rope_type' is \"{}\"; gyre has default, linear, llama3", printable(type)));
  }
  scaling.factor = factor_of(rope, "factor");
  if (type == "llama3") {
    scaling.low_freq_factor = factor_of(rope, "low_freq_factor");
    scaling.high_freq_factor = factor_of(rope, "high_freq_factor");
    scaling.original_context = rope.whole("original_max_position_embeddings");
  }
  if (scaling.factor == 1) return {};  // stretches nothing, which a run's configuration calls "none"
  return scaling;
}

// rope_theta and how positions are stretched. Version 4 of transformers has the latter in rope_scaling, version 5 has
// both in rope_parameters. A rope_theta in rope_scaling is refused if it is another: version 4 ignores it, version 5
// takes it.
void read_rope(ConfigFields& config, LlamaSettings& own) {
  own.rope_theta = config.number("rope_theta", kDefaultTheta);
  std::optional<RopeScaling> scaling;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const nlohmann::json* const found = config.find(key);
    if (found == nullptr) continue;
    const bool is_old = key == std::string_view("rope_scaling");
    ConfigFields rope(*found, config.origin_of(key));
    const RopeScaling said = read_scaling(rope, is_old);
    if (scaling.value_or(said) != said) rope.fail("stretches positions otherwise than 'rope_scaling'; leave one out");
    scaling = said;
    rope.only("partial_rotary_factor", 1.0);
    const double inner = rope.number("rope_theta", own.rope_theta);
    if (is_old && inner != own.rope_theta) {
      rope.fail(fmt::format("its 'rope_theta' is {}, and the one outside it is {}{}; make both the same", inner,
                            own.rope_theta, config.has("rope_theta") ? "" : ", being missing"));
    }
    own.rope_theta = inner;
  }
  own.rope_scaling = scaling.value_or(RopeScaling());
  config.only("partial_rotary_factor", 1.0);
}

nlohmann::ordered_json rope_json(const RopeScaling& scaling) {
  if (scaling.kind == "none") return {{"rope_type", "default"}};
  nlohmann::ordered_json json = {{"rope_type", scaling.kind}, {"factor", scaling.factor}};
  if (scaling.kind == "linear") return json;
  json["low_freq_factor"] = scaling.low_freq_factor;
  json["high_freq_factor"] = scaling.high_freq_factor;
  json["original_max_position_embeddings"] = scaling.original_context;
  return json;
}

// Whether the attention of any layer, by "layer_types", is limited to a window.
bool has_windowed_layers(ConfigFields& config) {
  const nlohmann::json* const types = config.find("layer_types");
  if (types == nullptr) return false;
  if (!types->is_array()) config.fail("'layer_types' must be a list");
  bool has = false;
  for (const nlohmann::json& type : *types) {
    if (type != "full_attention" && type != "sliding_attention") {
      config.fail("'layer_types' has other layers than full_attention and sliding_attention, which gyre does not have");
    }
    has = has || type == "sliding_attention";
  }
  return has;
}

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

}  // namespace

Family llama_family_of(const char* model_type, const char* architecture, decltype(Family::read) read,
                       decltype(Family::misfit) misfit, decltype(Family::write) write) {
  return {.model_type = model_type,
          .architectures = {architecture},
          .kind = "llama",
          .prefix = "model.",
          .tied_unless_said = false,
          .tensors = llama_tensors(),
          .buffers = {".rotary_emb.inv_freq"},
          .read = read,
          .misfit = misfit,
          .write = write};
}

std::string misfit_of_heads(const ModelSettings& settings, const char* a_model, bool qkv_bias, bool qk_norm) {
  const auto own = settings.own.of_kind("llama").get<LlamaSettings>();
  if (own.qkv_bias != qkv_bias) {
    return fmt::format("{} has {} of queries, keys and values", a_model, qkv_bias ? "biases" : "no biases");
  }
  if (own.qk_norm != qk_norm) {
    return fmt::format("{} has {} of queries and keys", a_model, qk_norm ? "norms" : "no norms");
  }
  return "";
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

  auto& own = settings.own.get<LlamaSettings>();
  own.key_value_heads = whole_unless_null(config, "num_key_value_heads", usual.key_value_heads);
  if (own.key_value_heads == 0) own.key_value_heads = settings.heads;
  own.head_size = whole_unless_null(config, "head_dim", usual.head_size);
  if (own.head_size * settings.heads == settings.width) own.head_size = 0;  // the default
  read_rope(config, own);
  own.norm_epsilon = config.number("rms_norm_eps", 1e-6);
}

bool has_windows(ConfigFields& config) {
  const bool uses = config.flag("use_sliding_window", false), layers = has_windowed_layers(config);
  return uses || layers;
}

void fit_into_window(ConfigFields& config, ModelSettings& settings) {
  const int64_t window = config.whole("sliding_window", kUsualWindow, settings.context);
  if (window < 1) config.fail(fmt::format("'sliding_window' is {}; give 1 or more, or null", window));
  settings.context = std::min(settings.context, window);
}

bool keeps_window(const ModelSettings& settings, const nlohmann::ordered_json& config) {
  const auto window = config.find("sliding_window");
  return window != config.end() && window->is_number() && *window >= settings.context;
}

void write_windows(const ModelSettings& settings, nlohmann::ordered_json& config) {
  if (keeps_window(settings, config)) return;
  config["use_sliding_window"] = false;
  config.erase("layer_types");
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
  nlohmann::ordered_json rope = rope_json(own.rope_scaling);
  config["rope_scaling"] = own.rope_scaling.kind == "none" ? nlohmann::ordered_json() : rope;
  rope["rope_theta"] = own.rope_theta;
  config["rope_parameters"] = rope;  // for newer versions
}

}  // namespace gyre
