// Gradients of windows on one replica: each window that is open has its own fp32 buffer, so windows that overlap in
// time never mix and every microbatch's gradient is in exactly one update.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "gyre/runtime/flat_buffer.h"

namespace gyre {

class GradientWindows {
 public:
  GradientWindows(std::vector<ParameterSpec> specs, at::Device device);

  // The accumulators of `window`, zero at first.
  std::span<at::Tensor> accumulators(int64_t window);
  // Counts one microbatch whose gradient is now wholly in the window; returns how many are.
  int64_t count(int64_t window);
  // Hands out the window's buffer; it comes back by give_back, from any thread.
  FlatBuffer release(int64_t window);
  void give_back(FlatBuffer buffer);
  size_t open() const { return open_.size(); }

 private:
  struct Window {
    FlatBuffer buffer;
    int64_t contributions = 0;
  };
  std::vector<ParameterSpec> specs_;
  at::Device device_;
  std::map<int64_t, Window> open_;
  std::mutex free_mutex_;
  std::vector<FlatBuffer> free_;
};

}  // namespace gyre
