#include "gyre/kernels/rows.h"

#include <ATen/ATen.h>

#include <cstring>

#include "gyre/kernels/cpu_math.h"

namespace gyre {
namespace {

GYRE_CPU_KERNEL void set_kernel(float* __restrict to, const c10::BFloat16* __restrict from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = cpu::load(from + i);
}
GYRE_CPU_KERNEL void add_kernel(float* __restrict to, const c10::BFloat16* __restrict from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] += cpu::load(from + i);
}

GYRE_INLINE void round_row(const float* __restrict from, c10::BFloat16* __restrict to, int64_t size) {
  for (int64_t i = 0; i < size; ++i) cpu::store(to + i, from[i]);
}
GYRE_CPU_KERNEL void round_kernel(c10::BFloat16* to, int64_t to_stride, const float* from, int64_t from_stride,
                                  int64_t rows, int64_t size) {
  for (int64_t row = 0; row < rows; ++row) round_row(from + row * from_stride, to + row * to_stride, size);
}

bool is_fast(const at::Tensor& sum, const at::Tensor& part) {
  return cpu::is_plain(sum, at::kFloat) && cpu::is_plain(part, at::kBFloat16);
}

// Calls kernel(sum, part, elements) for each head. A head's visible keys are contiguous in both.
template <typename Kernel>
void for_heads(const at::Tensor& sum, const at::Tensor& part, Kernel kernel) {
  auto* to = sum.data_ptr<float>();
  const auto* from = part.data_ptr<c10::BFloat16>();
  const int64_t stride = sum.size(1) * sum.size(2), count = part.size(1) * part.size(2);
  for (int64_t head = 0; head < sum.size(0); ++head) kernel(to + head * stride, from + head * count, count);
}

}  // namespace

void copy_head_rows(const at::Tensor& to, const at::Tensor& from) {
  if (!cpu::has_whole_rows(to) || !cpu::has_whole_rows(from)) return portable::copy_head_rows(to, from);
  const auto element = static_cast<int64_t>(to.element_size());
  auto* const to_bytes = static_cast<char*>(to.data_ptr());
  const auto* const from_bytes = static_cast<const char*>(from.data_ptr());
  for (int64_t i = 0; i < to.size(0); ++i) {
    for (int64_t j = 0; j < to.size(1); ++j) {
      cpu::copy_rows(to_bytes + (i * to.stride(0) + j * to.stride(1)) * element, to.stride(2) * element,
                     from_bytes + (i * from.stride(0) + j * from.stride(1)) * element, from.stride(2) * element,
                     to.size(2), to.size(3) * element);
    }
  }
}

void set_keys(const at::Tensor& sum, const at::Tensor& part) {
  if (!is_fast(sum, part)) return portable::set_keys(sum, part);
  for_heads(sum, part, [](float* to, const c10::BFloat16* from, int64_t count) { set_kernel(to, from, count); });
}

void add_keys(const at::Tensor& sum, const at::Tensor& part) {
  if (!is_fast(sum, part)) return portable::add_keys(sum, part);
  for_heads(sum, part, [](float* to, const c10::BFloat16* from, int64_t count) { add_kernel(to, from, count); });
}

void cpu::copy_rows(void* to, int64_t to_stride, const void* from, int64_t from_stride, int64_t rows, int64_t bytes) {
  auto* row = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  for (int64_t i = 0; i < rows; ++i, row += to_stride, source += from_stride) {
    std::memcpy(row, source, static_cast<size_t>(bytes));
  }
}

void cpu::to_bf16(c10::BFloat16* to, int64_t to_stride, const float* from, int64_t from_stride, int64_t rows,
                  int64_t size) {
  round_kernel(to, to_stride, from, from_stride, rows, size);
}

namespace portable {

void copy_head_rows(const at::Tensor& to, const at::Tensor& from) {
  to.copy_(from);
}

void set_keys(const at::Tensor& sum, const at::Tensor& part) {
  sum.narrow(1, 0, part.size(1)).copy_(part);
}

void add_keys(const at::Tensor& sum, const at::Tensor& part) {
  sum.narrow(1, 0, part.size(1)).add_(part);
}

}  // namespace portable

}  // namespace gyre
