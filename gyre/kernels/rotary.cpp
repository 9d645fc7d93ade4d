#include "gyre/kernels/rotary.h"

#include <ATen/ATen.h>

#include "gyre/kernels/portable.h"

namespace gyre {
namespace {

void turn(at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const int64_t half = x.size(-1) / 2;
  at::Tensor first = x.narrow(-1, 0, half), second = x.narrow(-1, half, half);
  const at::Tensor a = first.to(cos.scalar_type()), b = second.to(cos.scalar_type());
  const at::Tensor turned = a * cos - b * sin;  // a and b may be x itself: before either changes
  second.copy_(b * cos + a * sin);
  first.copy_(turned);
}

}  // namespace

RotaryAngles rotary_angles(int64_t context, int64_t size, double base, const at::Tensor& like, int64_t first) {
  // In fp64: fp32 is off by 1e-3 of a turn at positions of ten thousand.
  const auto options = like.options().dtype(at::kDouble);
  const at::Tensor exponents = at::arange(0, size, 2, options).mul_(-1.0 / static_cast<double>(size));
  const at::Tensor angles = at::outer(at::arange(first, first + context, options), at::pow(base, exponents));
  const auto type = portable::wide_type(like);
  return {angles.cos().to(type), angles.sin().to(type)};
}

void rotate_in_place(at::Tensor& x, const RotaryAngles& angles) {
  turn(x, angles.cos, angles.sin);
}

void rotate_back_in_place(at::Tensor& grad, const RotaryAngles& angles) {
  turn(grad, angles.cos, angles.sin.neg());
}

}  // namespace gyre
