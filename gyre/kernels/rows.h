// Copies, sums and rounding of rows. A head's are short and lie apart, so that on the CPU ATen's iterators cost more
// than the bytes do.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gyre {

// to = from: (outer, middle, rows, size) both, of one type, rows of `size` elements without gaps.
void copy_head_rows(const at::Tensor& to, const at::Tensor& from);

// sum[:, 0:seen] = part, or += part. sum: (heads, keys, size), fp32 or what part is; part: (heads, seen, size).
void set_keys(const at::Tensor& sum, const at::Tensor& part);
void add_keys(const at::Tensor& sum, const at::Tensor& part);

namespace cpu {
// Rows of `bytes` bytes, between places that lie `to_stride` and `from_stride` bytes apart.
void copy_rows(void* to, int64_t to_stride, const void* from, int64_t from_stride, int64_t rows, int64_t bytes);
// Rows of `size` elements, between places that lie so many elements apart.
void to_bf16(c10::BFloat16* to, int64_t to_stride, const float* from, int64_t from_stride, int64_t rows, int64_t size);
}  // namespace cpu

namespace portable {
void copy_head_rows(const at::Tensor& to, const at::Tensor& from);
void set_keys(const at::Tensor& sum, const at::Tensor& part);
void add_keys(const at::Tensor& sum, const at::Tensor& part);
}  // namespace portable

}  // namespace gyre
