#include "gyre/model/settings/llama_settings.h"

#include <fmt/format.h>

#include <vector>

#include "gyre/model/settings/model_settings.h"

namespace gyre {
namespace {

std::vector<OptionFault> llama_faults(const ModelSettings& settings) {
  std::vector<OptionFault> faults;
  const auto add = [&](const char* key, const std::string& what) { faults.push_back({{key, "kind"}, what}); };
  if (settings.bias) add("bias", "is true, and kind = \"llama\" has no biases; give false");
  if (settings.activation != "silu") {
    add("activation",
        fmt::format("is \"{}\", and the gate of kind = \"llama\" is \"silu\"; give that", settings.activation));
  }
  if (settings.dropout > 0) {
    add("dropout", fmt::format("is {}, and kind = \"llama\" has none; give 0", settings.dropout));
  }
  const auto own = settings.own.of_kind("llama").get<LlamaSettings>();
  const int64_t key_value = key_value_heads(own, settings.heads);
  if (settings.heads % key_value != 0) {
    add("heads", fmt::format("is {}, which [model.llama] key_value_heads = {} does not divide; choose one that does",
                             settings.heads, key_value));
  }
  if (own.head_size == 0 && settings.width % settings.heads != 0) {
    add("heads", fmt::format("is {}, which does not divide width {}; choose heads that do, or give [model.llama] "
                             "head_size",
                             settings.heads, settings.width));
  } else if (own.head_size % 2 != 0) {
    faults.push_back({{"kind"},
                      fmt::format("is \"llama\", and [model.llama] head_size is {}; rotary position embedding needs an "
                                  "even number",
                                  own.head_size)});
  } else if (const int64_t size = head_size(own, settings.width, settings.heads); size % 2 != 0) {
    add("heads", fmt::format("is {}, so that a head has {} elements; rotary position embedding needs an even number",
                             settings.heads, size));
  }
  const RopeScaling& rope = own.rope_scaling;
  if (rope.kind == "none" && rope.factor != 1) {
    add("kind", fmt::format("is \"llama\", and [model.llama] rope_factor = {} needs a rope_scaling; give linear or "
                            "llama3",
                            rope.factor));
  } else if (rope.kind != "none" && rope.factor == 1) {
    add("kind", fmt::format("is \"llama\", and [model.llama] rope_scaling = \"{}\" needs a rope_factor above 1; give "
                            "one, or \"none\"",
                            rope.kind));
  } else if (rope.kind == "llama3" && rope.low_freq_factor >= rope.high_freq_factor) {
    add("kind", fmt::format("is \"llama\", and [model.llama] rope_low_freq_factor = {} is not below "
                            "rope_high_freq_factor = {}; give less",
                            rope.low_freq_factor, rope.high_freq_factor));
  }
  return faults;
}

void set_llama_defaults(ModelSettings& settings) {
  settings.bias = false;
  settings.activation = "silu";
}

}  // namespace

ModelKind llama_kind() {
  return {.name = "llama",
          .meaning =
              "decoder with RMSNorm, rotary position embedding, a gated MLP and grouped-query attention; needs bias = "
              "false and activation = \"silu\", which are its defaults",
          .own = LlamaSettings(),
          .continues_text = true,
          .sizes_heads = true,
          .set_defaults = set_llama_defaults,
          .faults = llama_faults};
}

}  // namespace gyre
