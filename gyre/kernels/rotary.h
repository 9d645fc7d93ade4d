// Rotary positions (Su et al., 2021): every head's queries and keys are turned, pair by pair of their elements, by an
// angle in proportion to the position, so that their products depend on distances alone.
#pragma once

#include <ATen/core/Tensor.h>

namespace gyre {

// Cosines and sines, (context, size / 2) fp32 on the device of `like`: position p's pair i turns by p / base^(2 i /
// size).
struct RotaryAngles {
  at::Tensor cos, sin;
};
// first: the position of the first of them.
RotaryAngles rotary_angles(int64_t context, int64_t size, double base, const at::Tensor& like, int64_t first = 0);

// x: (..., context, size), changed in place. Element i pairs with i + size / 2, as in checkpoints in the layout of
// Hugging Face.
void rotate_in_place(at::Tensor& x, const RotaryAngles& angles);
// The other way round: the gradient by x of the gradient by the result.
void rotate_back_in_place(at::Tensor& grad, const RotaryAngles& angles);

}  // namespace gyre
