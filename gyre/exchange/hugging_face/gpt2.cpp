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

void read(ConfigFields& config, ModelSettings& settings) {
  settings.layers = config.whole("n_layer");
  settings.width = config.whole("n_embd");
  settings.heads = config.whole("n_head");
  settings.context = config.whole("n_positions");
  settings.mlp_width = config.whole("n_inner", 4 * settings.width, 4 * settings.width);
  settings.activation = read_activation(config, "activation_function", "gelu_new");
  config.only("layer_norm_epsilon", kEpsilon);
  config.only("scale_attn_weights", true);
  config.only("scale_attn_by_inverse_layer_idx", false);
  config.only("add_cross_attention", false);
}

void write(const ModelSettings& settings, nlohmann::ordered_json& config) {
  config["vocab_size"] = settings.vocabulary;
  config["n_layer"] = settings.layers;
  config["n_embd"] = settings.width;
  config["n_head"] = settings.heads;
  config["n_positions"] = settings.context;
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
