#include "gyre/kernels/rotary.h"

#include <ATen/ATen.h>

#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/portable.h"
#include "gyre/tensors/profile_scope.h"

namespace gyre {
namespace {

using cpu::load;
using cpu::store;

// x: (heads, positions, 2 half). Products are rounded before they are added (this file is compiled without
// contraction), as on the portable path.
template <typename T>
GYRE_INLINE void turn_loop(T* x, const float* cos, const float* sin, float direction, int64_t heads, int64_t positions,
                           int64_t half) {
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t position = 0; position < positions; ++position, x += 2 * half) {
      const float* const c = cos + position * half;
      const float* const s = sin + position * half;
      T* __restrict const first = x;
      T* __restrict const second = x + half;
      for (int64_t i = 0; i < half; ++i) {
        const float a = load(first + i), b = load(second + i), turn = direction * s[i];
        store(first + i, a * c[i] - b * turn);
        store(second + i, b * c[i] + a * turn);
      }
    }
  }
}

#define GYRE_ROTARY(T)                                                                                       \
  GYRE_CPU_KERNEL void turn_kernel(T* x, const float* cos, const float* sin, float direction, int64_t heads, \
                                   int64_t positions, int64_t half) {                                        \
    turn_loop(x, cos, sin, direction, heads, positions, half);                                               \
  }
GYRE_ROTARY(float)
GYRE_ROTARY(c10::BFloat16)
#undef GYRE_ROTARY

template <typename T>
void cpu_turn(at::Tensor& x, const RotaryAngles& angles, float direction) {
  const at::Tensor cos = angles.cos.contiguous(), sin = angles.sin.contiguous();
  const int64_t positions = cos.size(0), half = cos.size(1);
  turn_kernel(x.data_ptr<T>(), cos.data_ptr<float>(), sin.data_ptr<float>(), direction,
              x.numel() / (positions * 2 * half), positions, half);
}

// direction: 1, or -1 for back.
void turn(at::Tensor& x, const RotaryAngles& angles, float direction) {
  const ProfileScope scope("gyre::rotary");
  if (cpu::is_plain(x, at::kFloat)) return cpu_turn<float>(x, angles, direction);
  if (cpu::is_plain(x, at::kBFloat16)) return cpu_turn<c10::BFloat16>(x, angles, direction);
  direction > 0 ? portable::rotate_in_place(x, angles) : portable::rotate_back_in_place(x, angles);
}

}  // namespace

RotaryAngles RotaryPositions::compute(int64_t first, int64_t count, at::TensorOptions options) const {
  // In fp64: fp32 is off by 1e-3 of a turn at positions of ten thousand.
  options = options.dtype(at::kDouble);
  const at::Tensor exponents = at::arange(0, size_, 2, options).mul_(-1.0 / static_cast<double>(size_));
  const at::Tensor angles = at::outer(at::arange(first, first + count, options), at::pow(base_, exponents));
  return {angles.cos(), angles.sin()};
}

RotaryAngles RotaryPositions::angles(int64_t first, int64_t count, const at::Tensor& like) const {
  const auto type = portable::wide_type(like);
  if (!like.is_cpu() || type != at::kFloat || first + count > context_) {
    const RotaryAngles exact = compute(first, count, like.options());
    return {exact.cos.to(type), exact.sin.to(type)};
  }
  std::call_once(once_, [this, &like, type] {
    const RotaryAngles exact = compute(0, context_, like.options());
    kept_ = {exact.cos.to(type), exact.sin.to(type)};
  });
  return {kept_.cos.narrow(0, first, count), kept_.sin.narrow(0, first, count)};
}

void rotate_in_place(at::Tensor& x, const RotaryAngles& angles) {
  turn(x, angles, 1);
}

void rotate_back_in_place(at::Tensor& grad, const RotaryAngles& angles) {
  turn(grad, angles, -1);
}

namespace portable {

void rotate_in_place(at::Tensor& x, const RotaryAngles& angles) {
  const int64_t half = x.size(-1) / 2;
  at::Tensor first = x.narrow(-1, 0, half), second = x.narrow(-1, half, half);
  const at::Tensor a = first.to(angles.cos.scalar_type()), b = second.to(angles.cos.scalar_type());
  const at::Tensor turned = a * angles.cos - b * angles.sin;  // a and b may be x itself: before either changes
  second.copy_(b * angles.cos + a * angles.sin);
  first.copy_(turned);
}

void rotate_back_in_place(at::Tensor& grad, const RotaryAngles& angles) {
  portable::rotate_in_place(grad, {angles.cos, angles.sin.neg()});
}

}  // namespace portable

}  // namespace gyre
