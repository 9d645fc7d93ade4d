// What others need to know of a model before it is built. Free of torch. What builds one is in build/model_maker.h,
// under the same name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gyre/core/options.h"
#include "gyre/core/registry.h"

namespace gyre {

struct ModelSettings;

struct ModelKind {
  std::string name;
  std::string meaning;
  OptionTable own = {};  // its own options, at their defaults
  // Tokens that its vocabulary has behind the tokenizer's; null: none.
  int64_t (*special_tokens)(const ModelSettings& settings) = nullptr;
  int64_t tokens_around_text = 0;  // of a sequence, those that are not text
  bool continues_text = false;     // whether it can be asked for the next token
  bool sizes_heads = false;        // whether heads need not divide the width, and `faults` says what they must do
  // Sets the options of [model] that this kind needs other defaults for. A configuration that does not give a key gets
  // this value. Null: the defaults of ModelSettings.
  void (*set_defaults)(ModelSettings& settings) = nullptr;
  std::vector<OptionFault> (*faults)(const ModelSettings& settings) = nullptr;  // null: there are none
};

// The builtin ones, and what a program has added.
Registry<ModelKind>& model_kinds();

}  // namespace gyre
