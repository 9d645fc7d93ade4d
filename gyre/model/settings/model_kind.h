// The registry of model kinds: what other code needs to know of a model before it is built. Free of torch. The function
// that builds a model is registered under the same name in build/model_maker.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gyre/core/options.h"
#include "gyre/core/registry.h"

namespace gyre {

struct ModelSettings;

// An option that is the number of a special token; -1 leaves it open.
struct TokenOption {
  std::string text;  // the token's in tokenizers
  int64_t* number;
};

struct ModelKind {
  std::string name;
  std::string meaning;
  OptionTable own = {};  // its own options, at their defaults
  // Number of tokens that its vocabulary has after the tokenizer's; null: none.
  int64_t (*special_tokens)(const ModelSettings& settings) = nullptr;
  // Its special tokens that a tokenizer may have too, in the order in which they otherwise follow the tokenizer's;
  // null: none. The pointers are into `settings`.
  std::vector<TokenOption> (*token_options)(ModelSettings& settings) = nullptr;
  // Whether its loss is the sum of several, so that exp(loss) is no perplexity; null: it is one loss.
  bool (*sums_losses)(const ModelSettings& settings) = nullptr;
  int64_t tokens_around_text = 0;  // special tokens in each sequence, which hold no text
  bool continues_text = false;     // whether it predicts the next token
  bool sizes_heads = false;        // true: heads need not divide the width, and `faults` checks them instead
  // Sets the options of [model] that have other defaults for this kind. A configuration that does not give a key gets
  // this value. Null: the defaults of ModelSettings.
  void (*set_defaults)(ModelSettings& settings) = nullptr;
  // Settings that do not go together for this kind; null: there are none.
  std::vector<OptionFault> (*faults)(const ModelSettings& settings) = nullptr;
};

// The built-in kinds, and those that the program has added.
Registry<ModelKind>& model_kinds();

}  // namespace gyre
