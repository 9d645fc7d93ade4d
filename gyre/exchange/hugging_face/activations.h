// What transformers calls the non-linearities that gyre has.
#pragma once

#include <string>

#include "gyre/exchange/hugging_face/config_fields.h"

namespace gyre {

// [model] activation of what config.json has under `key`. InputError for one that gyre lacks.
std::string read_activation(ConfigFields& config, const char* key, const std::string& usual);
// The inverse.
std::string their_activation(const std::string& ours);

}  // namespace gyre
