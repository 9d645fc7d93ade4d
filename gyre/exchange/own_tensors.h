// The parameters of a model that a configuration describes, by name.
#pragma once

#include <vector>

#include "gyre/exchange/hugging_face/correspondence.h"
#include "gyre/model/settings/model_settings.h"

namespace gyre {

std::vector<OwnTensor> own_tensors(const ModelSettings& settings);

}  // namespace gyre
