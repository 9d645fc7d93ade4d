// The first layer of a GPT: token embedding plus learned position, with dropout. Users go through build_gpt() in gpt.h.
#pragma once

#include <memory>

#include "gyre/model/layer.h"
#include "gyre/model/settings/model_settings.h"

namespace gyre {

// The layer "embedding".
std::shared_ptr<const Layer> make_gpt_embedding(const ModelSettings& settings);

}  // namespace gyre
