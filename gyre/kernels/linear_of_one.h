// The linear map of one row, made again and again with the same matrix, for generating a text token by token.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>

namespace gyre {

namespace onednn {
class PackedMatrix;
}

class LinearOfOne {
 public:
  LinearOfOne();
  LinearOfOne(LinearOfOne&&) noexcept;
  LinearOfOne& operator=(LinearOfOne&&) noexcept;
  ~LinearOfOne();

  // x: (..., in) with a single row; weight: (out, in); bias: (out) or undefined. Returns (..., out). In bf16, on a CPU
  // with instructions for it, it has the bits of that row in linear() of many rows; with oneDNN 3.7 the last bit of a
  // few elements may differ if rows are longer than a thousand. Where oneDNN makes the products, the first call keeps a
  // packed copy of the matrix, so weight and bias must be the same in all calls.
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

 private:
  bool is_prepared_ = false;
  std::optional<at::ScalarType> type_;            // of the copy
  std::unique_ptr<onednn::PackedMatrix> packed_;  // null: linear() does as well
};

}  // namespace gyre
