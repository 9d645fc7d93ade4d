#include "gyre/runtime/gradient_windows.h"

#include <utility>

namespace gyre {

GradientSums GradientWindows::sums(int64_t window) {
  auto found = open_.find(window);
  if (found == open_.end()) {
    PooledBuffer buffer = pool_.take();
    std::vector<char> holds(buffer->tensors.size());
    found = open_.emplace(window, Window{std::move(buffer), std::move(holds), 0}).first;
  }
  return {found->second.buffer->tensors, found->second.holds};
}

PooledBuffer GradientWindows::close(int64_t window) {
  Window closed = std::move(open_.extract(window).mapped());
  for (size_t i = 0; i < closed.holds.size(); ++i) {
    if (closed.holds[i] == 0) closed.buffer->tensors[i].zero_();  // no microbatch had a gradient for it
  }
  return std::move(closed.buffer);
}

}  // namespace gyre
