// The tensors that an optimizer keeps for a parameter: making them, their bytes, loading them by name.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "gyre/tensors/parameter.h"

namespace gyre {

// fp32 zeros of the parameter's shape.
at::Tensor state_zeros(const ParameterSpec& spec, at::Device device);
// Their bytes; a double, since a wrong configuration's sizes fit no integer.
double state_tensor_bytes(const ParameterSpec& spec);

// Copies state[name] into `tensor`. InputError when it is missing or has another shape.
void load_tensor(const NamedTensors& state, const std::string& name, const at::Tensor& tensor);

}  // namespace gyre
