// Copies, sums and rounding of rows. The rows of a head are short and not adjacent, so on the CPU ATen's iterators
// would cost more than moving the bytes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gyre {

// to = from, both (outer, middle, rows, size) and of one type. The fast path needs rows of `size` contiguous elements.
void copy_head_rows(const at::Tensor& to, const at::Tensor& from);

// sum[:, 0:seen] = part, or += part. sum: (heads, keys, size), in fp32 or part's type; part: (heads, seen, size).
void set_keys(const at::Tensor& sum, const at::Tensor& part);
void add_keys(const at::Tensor& sum, const at::Tensor& part);

namespace cpu {
// Copies rows of `bytes` bytes. Strides in bytes.
void copy_rows(void* to, int64_t to_stride, const void* from, int64_t from_stride, int64_t rows, int64_t bytes);
// Rounds rows of `size` fp32 elements to bf16. Strides in elements.
void to_bf16(c10::BFloat16* to, int64_t to_stride, const float* from, int64_t from_stride, int64_t rows, int64_t size);
}  // namespace cpu

namespace portable {
void copy_head_rows(const at::Tensor& to, const at::Tensor& from);
void set_keys(const at::Tensor& sum, const at::Tensor& part);
void add_keys(const at::Tensor& sum, const at::Tensor& part);
}  // namespace portable

}  // namespace gyre
