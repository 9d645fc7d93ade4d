// config.json: what a model of transformers is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gyre/exchange/hugging_face/family.h"

namespace gyre {

struct DescribedModel {
  const Family* family = nullptr;
  ModelSettings settings;  // without dropout
};

// InputError, beginning with `origin`, for another architecture, an option that gyre lacks, sizes that do not fit.
DescribedModel parse_config_json(std::string_view text, const std::string& origin);

// `dtype`: of the weights beside it, "float32". `earlier`: the config.json that the model came with, if it did; what
// the family does not say itself stays as it is there. Of settings whose sizes are all known.
std::string to_config_json(const Family& family, const ModelSettings& settings, const std::string& dtype,
                           const std::optional<std::string>& earlier);

}  // namespace gyre
