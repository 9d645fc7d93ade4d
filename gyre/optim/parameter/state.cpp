#include "gyre/optim/parameter/state.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gyre/core/error.h"
#include "gyre/tensors/shape.h"

namespace gyre {

at::Tensor state_zeros(const ParameterSpec& spec, at::Device device, at::ScalarType type) {
  return at::zeros(spec.shape, at::TensorOptions().dtype(type).device(device));
}

double state_tensor_bytes(const ParameterSpec& spec, at::ScalarType type) {
  return numel_as_double(spec.shape) * static_cast<double>(at::elementSize(type));
}

void load_tensor(const NamedTensors& state, const std::string& name, const at::Tensor& tensor) {
  const auto found = state.find(name);
  if (found == state.end()) {
    throw InputError(
        fmt::format("optimizer state has no '{}'; it was saved by another optimizer or model, so continue with "
                    "the same [optimizer] kind",
                    name));
  }
  if (found->second.sizes() != tensor.sizes()) {
    throw InputError(fmt::format("optimizer state '{}' has shape ({}), expected ({})", name,
                                 fmt::join(found->second.sizes(), ", "), fmt::join(tensor.sizes(), ", ")));
  }
  tensor.copy_(found->second);
}

}  // namespace gyre
