// A small model of transformers, as files.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <optional>

#include "gyre/checkpoint/safetensors.h"
#include "gyre/core/files.h"
#include "gyre/exchange/hugging_face/config_json.h"
#include "gyre/exchange/hugging_face/correspondence.h"
#include "gyre/exchange/own_tensors.h"

namespace gyre::testing_support {

inline ModelSettings small_llama() {
  ModelSettings settings;
  settings.kind = "llama";
  settings.layers = 1;
  settings.width = settings.mlp_width = 8;
  settings.heads = 2;
  settings.context = 8;
  settings.vocabulary = 12;
  settings.bias = false;
  settings.activation = "silu";
  return settings;
}

// config.json and model.safetensors, with more tensors if there are any.
inline void write_small_model(const std::filesystem::path& directory, const ModelSettings& settings,
                              NamedTensors tensors = {}) {
  std::filesystem::create_directories(directory);
  const Family& family = family_of(settings);
  for (const Counterpart& one : correspondence(family, settings.layers, own_tensors(settings))) {
    if (one.use == TensorPair::Use::Own) tensors[one.theirs] = at::randn(one.shape);
  }
  write_safetensors(directory / "model.safetensors", tensors);
  write_file_atomic(directory / "config.json", to_config_json(family, settings, "float32", std::nullopt));
}
inline void write_small_llama(const std::filesystem::path& directory, NamedTensors tensors = {}) {
  write_small_model(directory, small_llama(), std::move(tensors));
}

}  // namespace gyre::testing_support
