#include "gyre/runtime/gradient_windows.h"

#include <optional>
#include <utility>

namespace gyre {

GradientWindows::GradientWindows(std::vector<ParameterSpec> specs, at::Device device)
    : specs_(std::move(specs)), device_(device) {}

std::span<at::Tensor> GradientWindows::accumulators(int64_t window) {
  const auto found = open_.find(window);
  if (found != open_.end()) return found->second.buffer.tensors;
  std::optional<FlatBuffer> buffer;
  {
    const std::lock_guard lock(free_mutex_);
    if (!free_.empty()) {
      buffer = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (buffer) {
    buffer->flat.zero_();
  } else {
    buffer = make_flat_buffer(specs_, at::kFloat, device_);
  }
  return open_.emplace(window, Window{std::move(*buffer), 0}).first->second.buffer.tensors;
}

int64_t GradientWindows::count(int64_t window) {
  return ++open_.at(window).contributions;
}

FlatBuffer GradientWindows::release(int64_t window) {
  return std::move(open_.extract(window).mapped().buffer);
}

void GradientWindows::give_back(FlatBuffer buffer) {
  const std::lock_guard lock(free_mutex_);
  free_.push_back(std::move(buffer));
}

}  // namespace gyre
