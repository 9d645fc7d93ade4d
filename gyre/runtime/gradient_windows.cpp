#include "gyre/runtime/gradient_windows.h"

namespace gyre {

std::span<at::Tensor> GradientWindows::accumulators(int64_t window) {
  auto found = open_.find(window);
  if (found == open_.end()) found = open_.emplace(window, Window{pool_.take_zeroed(), 0}).first;
  return found->second.buffer->tensors;
}

}  // namespace gyre
