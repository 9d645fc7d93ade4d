#include "gyre/runtime/gradient_windows.h"

#include <utility>

namespace gyre {

GradientWindows::GradientWindows(std::vector<ParameterSpec> specs, at::Device device)
    : specs_(std::move(specs)), device_(device) {}

std::span<at::Tensor> GradientWindows::accumulators(int64_t window) {
  const auto found = open_.find(window);
  if (found != open_.end()) return found->second.buffer.tensors;
  FlatBuffer buffer;
  if (free_.empty()) {
    buffer = make_flat_buffer(specs_, at::kFloat, device_);
  } else {
    buffer = std::move(free_.back());
    free_.pop_back();
    buffer.flat.zero_();
  }
  return open_.emplace(window, Window{std::move(buffer), 0}).first->second.buffer.tensors;
}

void GradientWindows::count(int64_t window) {
  ++open_.at(window).contributions;
}

int64_t GradientWindows::contributions(int64_t window) const {
  const auto found = open_.find(window);
  return found == open_.end() ? 0 : found->second.contributions;
}

void GradientWindows::recycle(int64_t window) {
  auto node = open_.extract(window);
  free_.push_back(std::move(node.mapped().buffer));
}

}  // namespace gyre
