// GPT-2. Its Conv1D layers store matrices as (in, out).
#include <fmt/format.h>

#include "gyre/exchange/hugging_face/activations.h"
#include "gyre/exchange/hugging_face/family.h"

namespace gyre {
namespace {

constexpr double kEpsilon = 1e-5;

TensorPair matrix(const char* theirs, const char* ours) {
  return {.theirs = theirs, .ours = ours, .transposed = true};
}
TensorPair bias(const char* theirs, const char* ours) {
  return {.theirs = theirs, .ours = ours, .zero_without = true};
}

std::vector<TensorPair> tensors() {
  return {{"transformer.wte.weight", "embedding.token.weight"},
          {"transformer.wpe.weight", "embedding.position.weight"},
          {"transformer.h.{}.ln_1.weight", "blocks.{}.norm1.weight"},
          bias("transformer.h.{}.ln_1.bias", "blocks.{}.norm1.bias"),
          matrix("transformer.h.{}.attn.c_attn.weight", "blocks.{}.attention.qkv.weight"),
          bias("transformer.h.{}.attn.c_attn.bias", "blocks.{}.attention.qkv.bias"),
          matrix("transformer.h.{}.attn.c_proj.weight", "blocks.{}.attention.projection.weight"),
          bias("transformer.h.{}.attn.c_proj.bias", "blocks.{}.attention.projection.bias"),
          {"transformer.h.{}.ln_2.weight", "blocks.{}.norm2.weight"},
          bias("transformer.h.{}.ln_2.bias", "blocks.{}.norm2.bias"),
          matrix("transformer.h.{}.mlp.c_fc.weight", "blocks.{}.mlp.in.weight"),
          bias("transformer.h.{}.mlp.c_fc.bias", "blocks.{}.mlp.in.bias"),
          matrix("transformer.h.{}.mlp.c_proj.weight", "blocks.{}.mlp.out.weight"),
          bias("transformer.h.{}.mlp.c_proj.bias", "blocks.{}.mlp.out.bias"),
          {"transformer.ln_f.weight", "head.norm.weight"},
          bias("transformer.ln_f.bias", "head.norm.bias"),
          {"lm_head.weight", "head.output.weight"},
          {.theirs = "lm_head.weight", .ours = "embedding.token.weight", .use = TensorPair::Use::ReadCopy}};
}

// The sizes have two names each. transformers writes the first and reads either; if both are there, the second counts.
struct Name {
  const char* written;
  const char* other;
};
constexpr Name kLayers = {"n_layer", "num_hidden_layers"};
constexpr Name kWidth = {"n_embd", "hidden_size"};
constexpr Name kHeads = {"n_head", "num_attention_heads"};
constexpr Name kPositions = {"n_positions", "max_position_embeddings"};

int64_t read_size(ConfigFields& config, const Name& name) {
  if (!config.has(name.other)) return config.whole(name.written);
  const int64_t size = config.whole(name.other);
  if (config.has(name.written) && config.whole(name.written) != size) {
    config.fail(fmt::format("'{}' is {} and '{}', which means the same, is {}; leave one of them out", name.written,
                            config.whole(name.written), name.other, size));
  }
  return size;
}

void write_size(int64_t size, const Name& name, nlohmann::ordered_json& config) {
  config.erase(name.other);
  config[name.written] = size;
}

void read(ConfigFields& config, ModelSettings& settings) {
  settings.layers = read_size(config, kLayers);
  settings.width = read_size(config, kWidth);
  settings.heads = read_size(config, kHeads);
  settings.context = read_size(config, kPositions);
  settings.mlp_width = config.whole("n_inner", 4 * settings.width, 4 * settings.width);
  settings.activation = read_activation(config, "activation_function", "gelu_new");
  config.only("layer_norm_epsilon", kEpsilon);
  config.only("scale_attn_weights", true);
  config.only("scale_attn_by_inverse_layer_idx", false);
  config.only("add_cross_attention", false);
}

void write(const ModelSettings& settings, nlohmann::ordered_json& config) {
  config["vocab_size"] = settings.vocabulary;
  write_size(settings.layers, kLayers, config);
  write_size(settings.width, kWidth, config);
  write_size(settings.heads, kHeads, config);
  write_size(settings.context, kPositions, config);
  config["n_inner"] = settings.mlp_width;
  config["activation_function"] = their_activation(settings.activation);
  config["layer_norm_epsilon"] = kEpsilon;
  config["embd_pdrop"] = settings.dropout;
  config["resid_pdrop"] = settings.dropout;
  config["attn_pdrop"] = 0.0;  // gyre drops no attention probabilities
}

}  // namespace

Family gpt2_family() {
  return {.model_type = "gpt2",
          .architectures = {"GPT2LMHeadModel"},
          .kind = "gpt",
          .prefix = "transformer.",
          .tied_unless_said = true,
          .tensors = tensors(),
          .buffers = {".attn.bias", ".attn.masked_bias"},
          .read = read,
          .write = write};
}

}  // namespace gyre
