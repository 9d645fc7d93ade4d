// Gradients of windows on one replica: each window that is open has its own fp32 buffer, so windows that overlap in
// time never mix and every microbatch's gradient is in exactly one update.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "gyre/tensors/buffer_pool.h"
#include "gyre/tensors/gradient_sums.h"

namespace gyre {

class GradientWindows {
 public:
  GradientWindows(std::span<const ParameterSpec> specs, at::Device device) : pool_(specs, at::kFloat, device) {}

  // Where the gradients of `window` are added.
  GradientSums sums(int64_t window);
  // Counts one microbatch whose gradient is now wholly in the window; returns how many are.
  int64_t count(int64_t window) { return ++open_.at(window).contributions; }
  // The window's buffer; the window is open no more.
  PooledBuffer close(int64_t window);

 private:
  struct Window {
    PooledBuffer buffer;
    std::vector<char> holds;  // of each tensor: whether it holds a sum
    int64_t contributions = 0;
  };
  BufferPool pool_;
  std::map<int64_t, Window> open_;
};

}  // namespace gyre
