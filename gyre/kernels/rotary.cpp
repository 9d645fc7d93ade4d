#include "gyre/kernels/rotary.h"

#include <ATen/ATen.h>

#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/cuda/kernels.h"
#include "gyre/kernels/parallel_for.h"
#include "gyre/tensors/profile_scope.h"
#include "gyre/tensors/wide_type.h"

namespace gyre {
namespace {

using cpu::load;
using cpu::store;

// Sizes and strides of x, (batch, heads, positions, 2 half), possibly a view whose rows are not adjacent.
struct Layout {
  int64_t heads, positions, half;
  int64_t sequence_stride, head_stride, position_stride;
};

// Products are rounded before they are added, as on the portable path: this file is compiled without contraction to
// FMA.
template <typename T>
GYRE_INLINE void rotate_row(T* __restrict first, T* __restrict second, const float* cos, const float* sin,
                            float direction, int64_t half) {
  for (int64_t i = 0; i < half; ++i) {
    const float a = load(first + i), b = load(second + i), s = direction * sin[i];
    store(first + i, a * cos[i] - b * s);
    store(second + i, b * cos[i] + a * s);
  }
}

// The heads [begin, end) of all sequences' heads.
template <typename T>
GYRE_INLINE void rotate_loop(T* x, const float* cos, const float* sin, float direction, const Layout& layout,
                             int64_t begin, int64_t end) {
  for (int64_t head = begin; head < end; ++head) {
    T* row = x + head / layout.heads * layout.sequence_stride + head % layout.heads * layout.head_stride;
    for (int64_t position = 0; position < layout.positions; ++position, row += layout.position_stride) {
      rotate_row(row, row + layout.half, cos + position * layout.half, sin + position * layout.half, direction,
                 layout.half);
    }
  }
}

#define GYRE_ROTARY(T)                                                                                                \
  GYRE_CPU_KERNEL void rotate_kernel(T* x, const float* cos, const float* sin, float direction, const Layout& layout, \
                                     int64_t begin, int64_t end) {                                                    \
    rotate_loop(x, cos, sin, direction, layout, begin, end);                                                          \
  }
GYRE_ROTARY(float)
GYRE_ROTARY(c10::BFloat16)
#undef GYRE_ROTARY

template <typename T>
void cpu_rotate(at::Tensor& x, const RotaryAngles& angles, float direction) {
  const at::Tensor cos = angles.cos.contiguous(), sin = angles.sin.contiguous();
  const Layout layout{x.size(1), cos.size(0), cos.size(1), x.stride(0), x.stride(1), x.stride(2)};
  T* const first = x.data_ptr<T>();
  const float *cosines = cos.data_ptr<float>(), *sines = sin.data_ptr<float>();
  cpu::for_rows(x.size(0) * layout.heads, 2 * layout.positions * layout.half, [&](int64_t begin, int64_t end) {
    rotate_kernel(first, cosines, sines, direction, layout, begin, end);
  });
}

// direction: 1, or -1 for the inverse.
void rotate(at::Tensor& x, const RotaryAngles& angles, float direction) {
  const ProfileScope scope("gyre::rotary");
  const bool is_fast = cpu::has_whole_rows(x);
  if (is_fast && x.scalar_type() == at::kFloat) return cpu_rotate<float>(x, angles, direction);
  if (is_fast && x.scalar_type() == at::kBFloat16) return cpu_rotate<c10::BFloat16>(x, angles, direction);
  if (cuda::rotate(x, angles, direction)) return;
  direction > 0 ? portable::rotate_in_place(x, angles) : portable::rotate_back_in_place(x, angles);
}

RotaryAngles in_fp32(const RotaryAngles& angles) {
  return {angles.cos.to(at::kFloat), angles.sin.to(at::kFloat)};
}

}  // namespace

at::Tensor rotary_frequencies(int64_t size, double base) {
  const at::Tensor exponents = at::arange(0, size, 2, at::kDouble).mul_(-1.0 / static_cast<double>(size));
  return at::pow(base, exponents);
}

RotaryAngles RotaryPositions::compute(int64_t first, int64_t count, at::TensorOptions options) const {
  // In fp64: with fp32 angles are off by 1e-3 of a turn at positions around ten thousand.
  options = options.dtype(at::kDouble);
  const at::Tensor angles = at::outer(at::arange(first, first + count, options), frequencies_.to(options.device()));
  return {angles.cos(), angles.sin()};
}

RotaryAngles RotaryPositions::angles(int64_t first, int64_t count, const at::Tensor& like) const {
  if (wide_type(like) != at::kFloat) return compute(first, count, like.options());
  if (first + count > context_) return in_fp32(compute(first, count, like.options()));
  const Cached& whole = cached(like.options());
  const auto here = [&](const at::Tensor& x) {
    return on_device(x, like.device(), whole.ready).narrow(0, first, count);
  };
  return {here(whole.angles.cos), here(whole.angles.sin)};
}

const RotaryPositions::Cached& RotaryPositions::cached(at::TensorOptions options) const {
  const std::lock_guard lock(mutex_);
  const at::Device device = options.device();
  Cached& cached = cached_[{device.type(), device.index()}];
  if (!cached.angles.cos.defined()) cached = {in_fp32(compute(0, context_, options)), DeviceEvent::record(device)};
  return cached;
}

void rotate_in_place(at::Tensor& x, const RotaryAngles& angles) {
  rotate(x, angles, 1);
}

void rotate_back_in_place(at::Tensor& grad, const RotaryAngles& angles) {
  rotate(grad, angles, -1);
}

namespace portable {

void rotate_in_place(at::Tensor& x, const RotaryAngles& angles) {
  const int64_t half = x.size(-1) / 2;
  at::Tensor first = x.narrow(-1, 0, half), second = x.narrow(-1, half, half);
  const at::Tensor a = first.to(angles.cos.scalar_type()), b = second.to(angles.cos.scalar_type());
  const at::Tensor rotated = a * angles.cos - b * angles.sin;  // before x changes: a and b may be views of it
  second.copy_(b * angles.cos + a * angles.sin);
  first.copy_(rotated);
}

void rotate_back_in_place(at::Tensor& grad, const RotaryAngles& angles) {
  portable::rotate_in_place(grad, {angles.cos, angles.sin.neg()});
}

}  // namespace portable

}  // namespace gyre
