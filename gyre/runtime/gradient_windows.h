// Gradients of windows on one replica: each window that is open has its own fp32 buffer, so windows that overlap in
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

class GradientWindows {
 public:
  // Of a stage: of its own parameters, and of the tied weight that it reads.
  GradientWindows(std::span<const ParameterSpec> specs, at::Device device, const std::optional<TiedWeight>& tied = {});

  // Where the gradients of `window` are added, as the stage's layers have their weights.
  GradientSums sums(int64_t window);
  // Counts one microbatch whose gradient is now wholly in the window; returns how many are.
  int64_t count(int64_t window) { return ++open_.at(window).contributions; }
  struct Closed {
    PooledBuffer own;   // of the stage's parameters
    PooledBuffer tied;  // of the tied weight; empty where the stage reads none
  };
  // What is in the window, which is open no more.
  Closed close(int64_t window);

 private:
  struct Window {
    Closed buffers;
    std::vector<at::Tensor> tensors = {};
    std::vector<char> holds = {};  // of each tensor: whether it holds a sum
    int64_t contributions = 0;
  };
  BufferPool pool_;
  size_t tied_place_ = 0;
  std::optional<BufferPool> tied_pool_;
  std::map<int64_t, Window> open_;
};

}  // namespace gyre
