// A matrix as oneDNN reads it fastest in products with a single row. oneDNN packs a matrix anew for every product,
// which takes longer than a product of one row.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace gyre::onednn {

// y = x W^T (+ bias) for one row x, by one thread at a time.
class PackedMatrix {
 public:
  virtual ~PackedMatrix() = default;
  // x: (in), y: (out), contiguous, in the type of the matrix.
  virtual void multiply(const void* x, void* y) = 0;
};

// weight: (out, in), bf16 or fp32, contiguous; bias: (out) in its type, or undefined. The matrix is copied. A build
// without oneDNN returns null.
std::unique_ptr<PackedMatrix> pack(const at::Tensor& weight, const at::Tensor& bias);

}  // namespace gyre::onednn
