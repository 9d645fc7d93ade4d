// Gradients of windows on one replica: each window that is open has fp32 sums of its own, so windows that overlap in
// time never mix and every microbatch's gradient is in exactly one update.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "gyre/model/stage.h"
#include "gyre/tensors/buffer_pool.h"
#include "gyre/tensors/gradient_sums.h"

namespace gyre {

// A window's gradient of a stage.
struct WindowGradient {
  std::vector<at::Tensor> tensors;  // fp32, by parameter
  PooledBuffer flat;                // that they are views of; empty where each has memory of its own
};

class GradientWindows {
 public:
  // How gradients of a stage lie in memory. Flat ones can be added and cut into shards as one tensor. Of whole ones,
  // which nobody adds anything to, each tensor is made when its first gradient comes, in the place of activations that
  // the same backward has let go of, and is gone after the update.
  enum class Layout { Flat, Whole };

  // Of a stage: of its own parameters, and of the tied weight that it reads.
  GradientWindows(std::span<const ParameterSpec> specs, at::Device device, Layout layout,
                  const std::optional<TiedWeight>& tied = {});

  // Where the gradients of `window` are added, as the stage's layers have their weights.
  GradientSums sums(int64_t window);
  // Counts one microbatch whose gradient is now wholly in the window; returns how many are.
  int64_t count(int64_t window) { return ++open_.at(window).contributions; }
  struct Closed {
    WindowGradient own;  // of the stage's parameters
    PooledBuffer tied;   // of the tied weight; empty where the stage reads none
  };
  // What is in the window, which is open no more.
  Closed close(int64_t window);

 private:
  struct Window {
    PooledBuffer flat, tied;
    std::vector<at::Tensor> tensors = {};  // of all that the stage reads
    std::vector<char> holds = {};          // of each tensor: whether it holds a sum
    int64_t contributions = 0;
  };
  Window opened();

  std::vector<ParameterSpec> specs_;  // of all that the stage reads
  at::Device device_;
  std::optional<BufferPool> pool_, tied_pool_;
  std::ptrdiff_t tied_place_ = 0;
  std::map<int64_t, Window> open_;
};

}  // namespace gyre
