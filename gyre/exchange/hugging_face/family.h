// The families of models that gyre exchanges with Hugging Face's transformers: which of their tensors corresponds to
// which parameter of a gyre model, and what config.json says about the model. `theirs` is a name in transformers,
// `ours` one in gyre. One file for each family. Free of torch.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/exchange/hugging_face/config_fields.h"
#include "gyre/model/settings/model_settings.h"

namespace gyre {

// A tensor of theirs and the parameter of ours that it corresponds to. {} in a name stands for the number of the block.
// Some models of a family lack the parameter of a row; the row does not count for them.
struct TensorPair {
  enum class Use {
    Own,       // the tensor that holds ours
    ReadCopy,  // a copy that is not written, but may be in a file, where it must be equal. If two rows have the same
               // `theirs`, the one whose `ours` exists counts
    Copy,      // a copy that is written too
  };
  static constexpr int kWhole = -1;

  const char* theirs;
  const char* ours;
  int part = kWhole;  // which of the matrices that ours has stacked by rows (ParameterSpec::row_blocks)
  bool transposed = false;
  Use use = Use::Own;
  bool zero_without = false;  // if ours does not exist, theirs is zeros
};

struct Family {
  std::string model_type;
  std::vector<std::string> architectures;  // the first one is written
  std::string kind;                        // [model] kind
  std::string prefix;                      // of names; files of the bare model lack it
  bool tied_unless_said;                   // tie_word_embeddings if config.json does not have it
  std::vector<TensorPair> tensors;
  std::vector<std::string> buffers;  // suffixes of the names of tensors that are no weights

  // Reads config.json, but for what all families have in common. Throws InputError naming an option that gyre lacks.
  void (*read)(ConfigFields& config, ModelSettings& settings);
  // Reads what only the names of the tensors say. Null: nothing.
  void (*read_names)(const std::set<std::string>& names, ModelSettings& settings) = nullptr;
  // Why a model of this kind does not belong to the family; empty if it does. Null: it always does.
  std::string (*misfit)(const ModelSettings& settings) = nullptr;
  // Writes config.json. All sizes of `settings` must be known: no mlp_width of 0.
  void (*write)(const ModelSettings& settings, nlohmann::ordered_json& config);
};

Family bert_family();     // bert.cpp
Family gpt2_family();     // gpt2.cpp
Family llama_family();    // llama.cpp
Family mistral_family();  // mistral.cpp
Family qwen2_family();    // qwen2.cpp
Family qwen3_family();    // qwen3.cpp
const std::vector<Family>& families();

// The family of a config.json. Throws InputError, naming what it is, if gyre does not have that.
const Family& family_of(ConfigFields& config);
// The family that such a model can be written as: `wanted`, a model_type, if it is one that fits. Throws InputError,
// saying why, if there is none.
const Family& family_of(const ModelSettings& settings, std::string_view wanted = {});

}  // namespace gyre
