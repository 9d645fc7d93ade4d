#include "gyre/optim/state.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gyre/core/error.h"

namespace gyre {

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
