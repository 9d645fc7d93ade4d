// Gradients of windows: each window that is open has its own fp32 buffer, so windows that overlap in time never mix and
// every microbatch's gradient is in exactly one update.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "gyre/runtime/flat_buffer.h"

namespace gyre {

class GradientWindows {
 public:
  GradientWindows(std::vector<ParameterSpec> specs, at::Device device);

  // The accumulators of `window`, zero at first.
  std::span<at::Tensor> accumulators(int64_t window);
  // Counts one microbatch whose gradient is now wholly in the window.
  void count(int64_t window);
  int64_t contributions(int64_t window) const;
  // After the update: the buffer is free for another window.
  void recycle(int64_t window);
  size_t open() const { return open_.size(); }

 private:
  struct Window {
    FlatBuffer buffer;
    int64_t contributions = 0;
  };
  std::vector<ParameterSpec> specs_;
  at::Device device_;
  std::map<int64_t, Window> open_;
  std::vector<FlatBuffer> free_;
};

}  // namespace gyre
