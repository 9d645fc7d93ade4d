// Rotary positions (Su et al., 2021): pairs of elements of every head's queries and keys are rotated by an angle
// proportional to the position, so that their dot products depend on relative positions alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "gyre/tensors/device.h"

namespace gyre {

// (size / 2), fp64: by how much pair i of a head with `size` elements turns from one position to the next, base^(-2 i /
// size).
at::Tensor rotary_frequencies(int64_t size, double base);

// Cosines and sines, each (positions, pairs), in fp32 (fp64 for fp64 tensors): pair i at position p is rotated by p
// frequencies[i].
struct RotaryAngles {
  at::Tensor cos, sin;
};

// The angles of a model's positions. On each device those in fp32 are computed once, at first use. All blocks and
// threads may share one object.
class RotaryPositions {
 public:
  // frequencies: (pairs of a head), fp64, on the CPU.
  RotaryPositions(int64_t context, at::Tensor frequencies) : context_(context), frequencies_(std::move(frequencies)) {}
  // The angles of positions [first, first + count), for tensors of the type and on the device of `like`.
  RotaryAngles angles(int64_t first, int64_t count, const at::Tensor& like) const;

 private:
  RotaryAngles compute(int64_t first, int64_t count, at::TensorOptions options) const;

  struct Cached {
    RotaryAngles angles;  // of the whole context, in fp32
    DeviceEvent ready;
  };
  const Cached& cached(at::TensorOptions options) const;

  int64_t context_;
  at::Tensor frequencies_;
  mutable std::mutex mutex_;
  mutable std::map<std::pair<c10::DeviceType, c10::DeviceIndex>, Cached> cached_;
};

// x: (batch, heads, context, size), changed in place. Element i is paired with element i + size / 2, as in Hugging
// Face's checkpoints.
void rotate_in_place(at::Tensor& x, const RotaryAngles& angles);
// The inverse rotation: turns the gradient of the result into the gradient of x, in place.
void rotate_back_in_place(at::Tensor& grad, const RotaryAngles& angles);

namespace portable {
void rotate_in_place(at::Tensor& x, const RotaryAngles& angles);
void rotate_back_in_place(at::Tensor& grad, const RotaryAngles& angles);
}  // namespace portable

}  // namespace gyre
