#include "gyre/runtime/gradient_windows.h"

#include <ATen/ATen.h>

#include <utility>

namespace gyre {

GradientWindows::GradientWindows(std::span<const ParameterSpec> specs, at::Device device, Layout layout,
                                 const std::optional<TiedWeight>& tied)
    : specs_(specs.begin(), specs.end()), device_(device) {
  if (layout == Layout::Flat) pool_.emplace(specs, at::kFloat, device);
  if (!tied) return;
  tied_place_ = static_cast<std::ptrdiff_t>(tied->place);
  tied_pool_.emplace(std::span(&tied->spec, 1), at::kFloat, device);
  specs_.insert(specs_.begin() + tied_place_, tied->spec);
}

GradientSums GradientWindows::sums(int64_t window) {
  auto found = open_.find(window);
  if (found == open_.end()) found = open_.emplace(window, opened()).first;
  return {found->second.tensors, found->second.holds, specs_, device_};
}

GradientWindows::Window GradientWindows::opened() {
  Window window;
  if (pool_) {
    window.flat = pool_->take();
    window.tensors = window.flat->tensors;
  }
  if (tied_pool_) {
    window.tied = tied_pool_->take();
    if (pool_) window.tensors.insert(window.tensors.begin() + tied_place_, at::Tensor());
  }
  window.tensors.resize(specs_.size());
  if (tied_pool_) window.tensors[static_cast<size_t>(tied_place_)] = window.tied->tensors[0];
  window.holds.resize(specs_.size());
  return window;
}

GradientWindows::Closed GradientWindows::close(int64_t window) {
  Window closed = std::move(open_.extract(window).mapped());
  const GradientSums sums(closed.tensors, closed.holds, specs_, device_);
  for (size_t i = 0; i < sums.size(); ++i) {
    if (!sums.holds(i)) sums.sum(i);  // no microbatch had a gradient for it: zeros
  }
  if (tied_pool_) closed.tensors.erase(closed.tensors.begin() + tied_place_);
  return {{std::move(closed.tensors), std::move(closed.flat)}, std::move(closed.tied)};
}

}  // namespace gyre
