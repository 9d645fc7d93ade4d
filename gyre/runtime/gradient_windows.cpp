#include "gyre/runtime/gradient_windows.h"

#include <utility>

namespace gyre {

GradientWindows::GradientWindows(std::span<const ParameterSpec> specs, at::Device device,
                                 const std::optional<TiedWeight>& tied)
    : pool_(specs, at::kFloat, device) {
  if (!tied) return;
  tied_place_ = tied->place;
  tied_pool_.emplace(std::span(&tied->spec, 1), at::kFloat, device);
}

GradientSums GradientWindows::sums(int64_t window) {
  auto found = open_.find(window);
  if (found == open_.end()) {
    Window opened{{pool_.take(), tied_pool_ ? tied_pool_->take() : PooledBuffer()}};
    opened.tensors = opened.buffers.own->tensors;
    if (tied_pool_) {
      opened.tensors.insert(opened.tensors.begin() + static_cast<std::ptrdiff_t>(tied_place_),
                            opened.buffers.tied->tensors[0]);
    }
    opened.holds.resize(opened.tensors.size());
    found = open_.emplace(window, std::move(opened)).first;
  }
  return {found->second.tensors, found->second.holds};
}

GradientWindows::Closed GradientWindows::close(int64_t window) {
  Window closed = std::move(open_.extract(window).mapped());
  for (size_t i = 0; i < closed.holds.size(); ++i) {
    if (closed.holds[i] == 0) closed.tensors[i].zero_();  // no microbatch had a gradient for it
  }
  return std::move(closed.buffers);
}

}  // namespace gyre
