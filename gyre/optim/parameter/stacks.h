// Tensors of one matrix, (rows, columns), or of several of one shape, stacked: (matrices, rows, columns). Functions
// that do the same to both.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace gyre {

inline bool is_stack(const at::Tensor& x) {
  return x.dim() > 2;
}

// The dimension of a side, 0 (rows) or 1 (columns).
inline int64_t dimension_of(int64_t side) {
  return side - 2;
}

// One number for each matrix, (matrices) or 0-dim, to be combined with x, whose first dimension is that of the
// matrices, if it has one: 0-dim numbers have no say in a result's type, so others are given x's.
inline at::Tensor for_each_matrix(const at::Tensor& numbers, const at::Tensor& x) {
  if (numbers.dim() == 0) return numbers;
  at::Tensor result = numbers.to(x.scalar_type());
  while (result.dim() < x.dim()) result = result.unsqueeze(-1);
  return result;
}

// The matrix at a place of a stack, or what is kept for it; x itself where there is but one.
inline at::Tensor at_place(const at::Tensor& x, int64_t place, bool stacked) {
  return stacked ? x.select(0, place) : x;
}

// to[i] <- from[i], in few kernels where libtorch has the function (from 2.1 on). It is found by its arguments'
// namespace, so that a version without it is no error.
template <typename List>
void copy_each(const List& to, const List& from) {
  if constexpr (requires { _foreach_copy_(to, from); }) {
    _foreach_copy_(to, from);
  } else {
    for (size_t i = 0; i < from.size(); ++i) to[i].copy_(from[i]);
  }
}

}  // namespace gyre
