// Qwen2: a Llama whose queries, keys and values have biases.
#include "gyre/exchange/hugging_face/llama_parts.h"
#include "gyre/model/settings/llama_settings.h"

namespace gyre {
namespace {

constexpr int64_t kUsualKeyValueHeads = 32;

void read(ConfigFields& config, ModelSettings& settings) {
  read_llama_parts(config, kUsualKeyValueHeads, settings);
  settings.own.get<LlamaSettings>().qkv_bias = true;
}

std::string misfit(const ModelSettings& settings) {
  if (!settings.own.of_kind("llama").get<LlamaSettings>().qkv_bias) {
    return "a Qwen2 has biases of queries, keys and values";
  }
  return "";
}

void write(const ModelSettings& settings, nlohmann::ordered_json& config) {
  write_llama_parts(settings, config);
  config.erase("head_dim");  // always width / heads
  config["use_sliding_window"] = false;
}

}  // namespace

Family qwen2_family() {
  return {.model_type = "qwen2",
          .architectures = {"Qwen2ForCausalLM"},
          .kind = "llama",
          .prefix = "model.",
          .tied_unless_said = false,
          .tensors = llama_tensors(),
          .buffers = {".rotary_emb.inv_freq"},
          .read = read,
          .read_names = nullptr,
          .misfit = misfit,
          .write = write};
}

}  // namespace gyre
