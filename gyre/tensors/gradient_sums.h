// The tensors in which gradients of weights are summed. A tensor that holds no sum yet need not be zero: the first
// gradient overwrites it, which saves a pass for zeroing and one for adding. A tensor may be undefined until its first
// gradient, which then allocates it: a backward frees activations as it computes gradients, and these take their place
// in memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstddef>
#include <span>

#include "gyre/tensors/parameter.h"

namespace gyre {

class GradientSums {
 public:
  // All of `tensors` hold sums (zeros count as a sum). Takes anything that converts to a span of tensors.
  template <typename Tensors>
  requires std::convertible_to<Tensors&, std::span<at::Tensor>> GradientSums(Tensors& tensors) : tensors_(tensors) {}
  GradientSums(std::span<at::Tensor> tensors) : tensors_(tensors) {}
  // holds: whether each tensor holds a sum. Set as gradients arrive.
  GradientSums(std::span<at::Tensor> tensors, std::span<char> holds) : tensors_(tensors), holds_(holds) {}
  // The same, but undefined tensors are allocated at their first gradient, with the specs' shapes.
  GradientSums(std::span<at::Tensor> tensors, std::span<char> holds, std::span<const ParameterSpec> specs,
               at::Device device)
      : tensors_(tensors), holds_(holds), specs_(specs), device_(device) {}

  size_t size() const { return tensors_.size(); }
  GradientSums part(size_t offset, size_t count) const {
    GradientSums part = *this;
    part.tensors_ = tensors_.subspan(offset, count);
    if (!holds_.empty()) part.holds_ = holds_.subspan(offset, count);
    if (!specs_.empty()) part.specs_ = specs_.subspan(offset, count);
    return part;
  }

  bool holds(size_t i) const { return holds_.empty() || holds_[i] != 0; }
  // The tensor, marked as holding a sum. The caller must ask holds(i) before: it adds to a sum, and overwrites
  // otherwise.
  at::Tensor& receive(size_t i) const {
    if (!holds_.empty()) holds_[i] = 1;
    if (!tensors_[i].defined()) make(i);
    return tensors_[i];
  }
  // The tensor, zeroed if it held no sum, for callers that can only add.
  at::Tensor& sum(size_t i) const {
    const bool is_sum = holds(i);
    at::Tensor& tensor = receive(i);
    if (!is_sum) tensor.zero_();
    return tensor;
  }
  void add(size_t i, const at::Tensor& gradient) const {
    if (holds(i)) {
      tensors_[i].add_(gradient);
    } else {
      receive(i).copy_(gradient);
    }
  }

 private:
  void make(size_t i) const;

  std::span<at::Tensor> tensors_;
  std::span<char> holds_;                 // empty: all tensors hold sums
  std::span<const ParameterSpec> specs_;  // empty: all tensors are defined
  at::Device device_ = at::kCPU;
};

}  // namespace gyre
