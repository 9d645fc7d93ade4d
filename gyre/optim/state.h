// Loading optimizer state by name.
#pragma once

#include <string>

#include "gyre/tensors/parameter.h"

namespace gyre {

// Copies state[name] into `tensor`. InputError when it is missing or has another shape.
void load_tensor(const NamedTensors& state, const std::string& name, const at::Tensor& tensor);

}  // namespace gyre
