// The tensors that an optimizer keeps for a parameter: making them, their bytes, loading them by name.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "gyre/optim/settings/optimizer_kind.h"
#include "gyre/tensors/parameter.h"

namespace gyre {

// Zeros of the parameter's shape.
at::Tensor state_zeros(const ParameterSpec& spec, at::Device device, at::ScalarType type = at::kFloat);
// Their bytes; a double, since a wrong configuration's sizes fit no integer.
double state_tensor_bytes(const ParameterSpec& spec, at::ScalarType type = at::kFloat);
// That Adam's moments are kept in.
inline at::ScalarType moments_type(const AdamSettings& settings) {
  return settings.bf16_moments ? at::kBFloat16 : at::kFloat;
}

// Copies state[name] into `tensor`. InputError when it is missing or has another shape.
void load_tensor(const NamedTensors& state, const std::string& name, const at::Tensor& tensor);

}  // namespace gyre
