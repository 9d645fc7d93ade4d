// Where gradients by weights are summed up. A tensor that holds no sum yet is not zero: the first gradient is written
// over whatever is in it, which saves a pass that zeroes it and one that adds to it. A tensor that is not there yet is
// made for its first gradient: a backward lets go of activations as it makes gradients, and these take their place.
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstddef>
#include <span>

#include "gyre/tensors/parameter.h"

namespace gyre {

class GradientSums {
 public:
  // All of `tensors` hold sums; zeros are one. (Anything that a span of tensors can be made of.)
  template <typename Tensors>
  requires std::convertible_to<Tensors&, std::span<at::Tensor>> GradientSums(Tensors& tensors) : tensors_(tensors) {}
  GradientSums(std::span<at::Tensor> tensors) : tensors_(tensors) {}
  // holds: whether each tensor holds a sum. Changed as gradients come.
  GradientSums(std::span<at::Tensor> tensors, std::span<char> holds) : tensors_(tensors), holds_(holds) {}
  // The same; tensors that are undefined are made, of the specs' shapes.
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
  // The tensor, for a gradient that is about to be added, or written where it holds nothing.
  at::Tensor& receive(size_t i) const {
    if (!holds_.empty()) holds_[i] = 1;
    if (!tensors_[i].defined()) make(i);
    return tensors_[i];
  }
  // The same for what can only add.
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
  std::span<char> holds_;                 // empty: all do
  std::span<const ParameterSpec> specs_;  // empty: all tensors are there
  at::Device device_ = at::kCPU;
};

}  // namespace gyre
