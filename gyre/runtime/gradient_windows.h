// Gradients of windows on one replica. Each open window has fp32 sums of its own, so windows that overlap in time never
// mix, and every microbatch's gradient is in exactly one update.
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

// A window's gradient at one stage.
struct WindowGradient {
  std::vector<at::Tensor> tensors;  // fp32, by parameter
  PooledBuffer flat;                // the buffer that they are views of; empty if each has memory of its own
};

class GradientWindows {
 public:
  // The layout of a stage's gradients in memory. Flat: one buffer, which can be added and cut into shards as one
  // tensor. Whole, if nothing is ever added to them: each tensor is allocated when its first gradient comes, where it
  // can take the place of activations released by the same backward, and is freed after the update.
  enum class Layout { Flat, Whole };

  // specs: the stage's own parameters; tied: the tied weight that it reads.
  GradientWindows(std::span<const ParameterSpec> specs, at::Device device, Layout layout,
                  const std::optional<TiedWeight>& tied = {});

  // The sums that the window's gradients are added to, in the order of the weights that the stage's layers read.
  GradientSums sums(int64_t window);
  // Counts one microbatch whose gradient is now complete in the window; returns how many there are.
  int64_t count(int64_t window) { return ++open_.at(window).contributions; }
  struct Closed {
    WindowGradient own;  // of the stage's parameters
    PooledBuffer tied;   // of the tied weight; empty where the stage reads none
  };
  // Removes the window and returns its gradients.
  Closed close(int64_t window);

 private:
  struct Window {
    PooledBuffer flat, tied;
    std::vector<at::Tensor> tensors = {};  // of everything that the stage reads
    std::vector<char> holds = {};          // of each tensor: whether it already holds a sum
    int64_t contributions = 0;
  };
  Window opened();

  std::vector<ParameterSpec> specs_;  // of everything that the stage reads
  at::Device device_;
  std::optional<BufferPool> pool_, tied_pool_;
  std::ptrdiff_t tied_place_ = 0;
  std::map<int64_t, Window> open_;
};

}  // namespace gyre
