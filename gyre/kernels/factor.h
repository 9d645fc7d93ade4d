// Matrices in the host's memory as factors of products, and the tensors from and for which products are made.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "gyre/kernels/portable.h"

namespace gyre {

template <typename Element>
struct FactorOf {
  const Element* data;
  int64_t stride;   // elements between the rows that are contiguous in memory
  bool transposed;  // the transpose of the factor is what is stored row-major
};

// The sizes of c (m, n) = a (m, k) b (k, n).
struct ProductSizes {
  int64_t m, n, k;
};

// x: a matrix.
inline bool is_column_major(const at::Tensor& x) {
  return x.stride(1) != 1;
}

// Whether the rows of the matrix x, or of its transpose, are contiguous, so that x can be a factor in place. A single
// row or column must be contiguous as a whole: with gaps oneDNN 3.7 gives wrong products. The stride to the next one,
// which is not there, may be anything in libtorch, but oneDNN takes only 1 or what rows that do not overlap have.
inline bool serves_as_factor(const at::Tensor& x, at::ScalarType type) {
  if (!x.is_cpu() || x.scalar_type() != type || x.dim() != 2 || x.numel() == 0) return false;
  const int64_t along = is_column_major(x) ? 0 : 1, next = x.stride(1 - along);
  if (x.size(0) == 1 || x.size(1) == 1) return x.is_contiguous() && (next == 1 || next >= x.size(along));
  return x.stride(along) == 1 && next >= x.size(along);
}

template <typename Element>
FactorOf<Element> factor_of(const at::Tensor& x) {
  const bool transposed = is_column_major(x);
  return {static_cast<const Element*>(x.data_ptr()), x.stride(transposed ? 1 : 0), transposed};
}

// (..., width) -> (rows, width), contiguous
inline at::Tensor contiguous_rows(const at::Tensor& x) {
  return portable::rows_of(x).contiguous();
}

// An empty tensor of x's shape, with `size` as the last dimension.
inline at::Tensor result_like(const at::Tensor& x, int64_t size) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = size;
  return at::empty(sizes, x.options());
}

}  // namespace gyre
