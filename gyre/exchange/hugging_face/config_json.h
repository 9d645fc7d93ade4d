// config.json: the description of a model of transformers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gyre/exchange/hugging_face/family.h"

namespace gyre {

struct DescribedModel {
  const Family* family = nullptr;
  ModelSettings settings;  // without dropout
};

// Throws InputError, beginning with `origin`, for another architecture, an option that gyre lacks, and sizes that do
// not fit.
DescribedModel parse_config_json(std::string_view text, const std::string& origin);

// "model_type"; empty if the text does not say it.
std::string model_type_of(std::string_view text);

// The special tokens of a model whose tokenizer is not the one that it came with.
struct OwnTokens {
  std::optional<int32_t> end_of_document;  // empty: the run has no tokenizer
};

// `dtype`: the type of the weights, such as "float32". `earlier`: the config.json that the model came with, if any;
// fields that the family does not write are taken from it, special tokens only without `own`. All sizes of `settings`
// must be known.
std::string to_config_json(const Family& family, const ModelSettings& settings, const std::string& dtype,
                           const std::optional<std::string>& earlier, const std::optional<OwnTokens>& own = {});

}  // namespace gyre
