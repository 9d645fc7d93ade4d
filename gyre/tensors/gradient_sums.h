// Where gradients by weights are summed up. A tensor that holds no sum yet is not zero: the first gradient is written
// over whatever is in it, which saves a pass that zeroes it and one that adds to it.
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstddef>
#include <span>

namespace gyre {

class GradientSums {
 public:
  // All of `tensors` hold sums; zeros are one. (Anything that a span of tensors can be made of.)
  template <typename Tensors>
  requires std::convertible_to<Tensors&, std::span<at::Tensor>> GradientSums(Tensors& tensors) : tensors_(tensors) {}
  GradientSums(std::span<at::Tensor> tensors) : tensors_(tensors) {}
  // holds: whether each tensor holds a sum. Changed as gradients come.
  GradientSums(std::span<at::Tensor> tensors, std::span<char> holds) : tensors_(tensors), holds_(holds) {}

  size_t size() const { return tensors_.size(); }
  GradientSums part(size_t offset, size_t count) const {
    return {tensors_.subspan(offset, count), holds_.empty() ? holds_ : holds_.subspan(offset, count)};
  }

  bool holds(size_t i) const { return holds_.empty() || holds_[i] != 0; }
  // The tensor, for a gradient that is about to be added, or written where it holds nothing.
  at::Tensor& receive(size_t i) const {
    if (!holds_.empty()) holds_[i] = 1;
    return tensors_[i];
  }
  // The same for what can only add.
  at::Tensor& sum(size_t i) const {
    if (!holds(i)) tensors_[i].zero_();
    return receive(i);
  }
  void add(size_t i, const at::Tensor& gradient) const {
    if (holds(i)) {
      tensors_[i].add_(gradient);
    } else {
      receive(i).copy_(gradient);
    }
  }

 private:
  std::span<at::Tensor> tensors_;
  std::span<char> holds_;  // empty: all do
};

}  // namespace gyre
