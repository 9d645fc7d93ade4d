// Rotary positions (Su et al., 2021): every head's queries and keys are turned, pair by pair of their elements, by an
// angle in proportion to the position, so that their products depend on distances alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <mutex>

namespace gyre {

// Cosines and sines, each (positions, size / 2) in fp32 (in fp64 for such tensors): position p's pair i turns by
// p / base^(2 i / size).
struct RotaryAngles {
  at::Tensor cos, sin;
};

// The angles of a model's positions. Those of the CPU are computed once, when they are first asked for; all blocks and
// threads may share them.
class RotaryPositions {
 public:
  // size: of a head, even.
  RotaryPositions(int64_t context, int64_t size, double base) : context_(context), size_(size), base_(base) {}
  // Of `count` positions from `first` on, for tensors of the type and on the device of `like`.
  RotaryAngles angles(int64_t first, int64_t count, const at::Tensor& like) const;

 private:
  RotaryAngles compute(int64_t first, int64_t count, at::TensorOptions options) const;

  int64_t context_, size_;
  double base_;
  mutable std::once_flag once_;
  mutable RotaryAngles kept_;  // of the whole context, in fp32 on the CPU
};

// x: (batch, heads, context, size), changed in place. Element i pairs with i + size / 2, as in checkpoints in the
// layout of Hugging Face.
void rotate_in_place(at::Tensor& x, const RotaryAngles& angles);
// The other way round: the gradient by x of the gradient by the result.
void rotate_back_in_place(at::Tensor& grad, const RotaryAngles& angles);

namespace portable {
void rotate_in_place(at::Tensor& x, const RotaryAngles& angles);
void rotate_back_in_place(at::Tensor& grad, const RotaryAngles& angles);
}  // namespace portable

}  // namespace gyre
