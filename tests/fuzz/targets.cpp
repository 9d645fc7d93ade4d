#include "fuzz/targets.h"

#include <algorithm>
#include <array>

namespace gyre::fuzz {
namespace {

constexpr auto kTargets = std::to_array<Target>({
    {"schedule_text", schedule_text},
    {"schedule_csv", schedule_csv},
    {"config", config},
    {"overrides", overrides},
    {"study", study},
    {"costs", costs},
    {"measured_layers", measured_layers},
    {"cluster", cluster},
    {"safetensors", safetensors},
    {"manifest", manifest},
    {"shard_index", shard_index},
    {"config_json", config_json},
    {"provenance", provenance},
    {"llmc_model", llmc_model},
    {"parts_mark", parts_mark},
    {"meta", meta},
    {"token_file", token_file},
    {"megatron_index", megatron_index},
    {"text", text},
    {"metrics", metrics},
    {"live", live},
    {"trace", trace},
    {"tokenizer_json", tokenizer_json},
    {"token_files", token_files},
    {"tokenizer_pattern", tokenizer_pattern},
#ifdef GYRE_FUZZ_TOKENIZER
    {"tokenizer", tokenizer},
#endif
});

}  // namespace

std::span<const Target> targets() {
  return kTargets;
}

const Target* find_target(std::string_view name) {
  const auto* found = std::find_if(kTargets.begin(), kTargets.end(), [&](const Target& t) { return name == t.name; });
  return found == kTargets.end() ? nullptr : found;
}

}  // namespace gyre::fuzz
