// The families of models that gyre exchanges with Hugging Face's transformers: which of their tensors is what of a
// model of ours, and what config.json says of it. One file a family. Free of torch.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "gyre/exchange/hugging_face/config_fields.h"
#include "gyre/exchange/hugging_face/special_tokens.h"
#include "gyre/model/settings/model_settings.h"

namespace gyre {

// One tensor of theirs and what it is of ours. In names {} is the number of the block. A table may have rows whose
// tensor of ours some models of the family lack: those have no such row.
struct TensorPair {
  enum class Use {
    Own,       // the one place where ours is written
    ReadCopy,  // the same again: may be in a file, where it must be equal. Of a name that another row has as well, the
               // row counts whose tensor of ours is there
    Copy,      // the same again, and written so
  };
  static constexpr int kWhole = -1;

  const char* theirs;
  const char* ours;
  int part = kWhole;  // of ours as several that are stacked by rows (ParameterSpec::row_blocks): which
  bool transposed = false;
  Use use = Use::Own;
  bool zero_without = false;  // where ours is not there, theirs is zeros
};

struct Family {
  std::string model_type;
  std::vector<std::string> architectures;  // the first is what is written
  std::string kind;                        // [model] kind
  std::string prefix;                      // that files of the bare model lack
  bool tied_unless_said;                   // what tie_word_embeddings is where config.json does not say it
  std::vector<TensorPair> tensors;
  std::vector<std::string> buffers;  // ends of names of tensors that are no weights

  // What config.json says, but for what all families have alike. InputError names an option that gyre lacks.
  void (*read)(ConfigFields& config, ModelSettings& settings);
  // What the names of the tensors say besides. Null: nothing.
  void (*read_names)(const std::set<std::string>& names, ModelSettings& settings);
  // What the numbers of its tokenizer's special tokens say. Null: nothing.
  void (*read_tokens)(const TokenNumbers& numbers, ModelSettings& settings);
  // Why a model of this kind is none of the family; empty: it is one.
  std::string (*misfit)(const ModelSettings& settings);
  // Of settings whose sizes are all known: no mlp_width of 0.
  void (*write)(const ModelSettings& settings, nlohmann::ordered_json& config);
};

Family bert_family();   // bert.cpp
Family gpt2_family();   // gpt2.cpp
Family llama_family();  // llama.cpp
Family qwen2_family();  // qwen2.cpp
Family qwen3_family();  // qwen3.cpp
const std::vector<Family>& families();

// The family that a config.json is of. InputError names what it is of else.
const Family& family_of(ConfigFields& config);
// The family that such a model can be written as. InputError says why there is none.
const Family& family_of(const ModelSettings& settings);

}  // namespace gyre
