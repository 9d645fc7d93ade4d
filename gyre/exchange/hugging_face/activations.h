// The names that transformers has for gyre's non-linearities.
#pragma once

#include <string>

#include "gyre/exchange/hugging_face/config_fields.h"

namespace gyre {

// The value of [model] activation for what config.json has under `key`, by default `usual`. Throws InputError for a
// non-linearity that gyre lacks.
std::string read_activation(ConfigFields& config, const char* key, const std::string& usual);
// The inverse.
std::string their_activation(const std::string& ours);

}  // namespace gyre
