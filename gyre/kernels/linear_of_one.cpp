#include "gyre/kernels/linear_of_one.h"

#include <ATen/ATen.h>

#include <optional>

#include "gyre/kernels/bf16/product.h"
#include "gyre/kernels/factor.h"
#include "gyre/kernels/linear.h"
#include "gyre/kernels/matrix_product.h"
#include "gyre/kernels/onednn/packed_matrix.h"
#include "gyre/kernels/onednn/product.h"
#include "gyre/tensors/profile_scope.h"

namespace gyre {
namespace {

// The type in which oneDNN makes the matrix's products; none: something else makes them.
std::optional<at::ScalarType> type_for_onednn(const at::Tensor& weight) {
  if (!weight.is_cpu() || !weight.is_contiguous() || weight.numel() == 0) return std::nullopt;
  const bool is_bf16 = weight.scalar_type() == at::kBFloat16;
  if (is_bf16 && bf16::cpu_serves()) return bf16::is_by_onednn() ? std::optional(at::kBFloat16) : std::nullopt;
  const bool in_fp32 = weight.scalar_type() == at::kFloat || is_widened(weight);
  return in_fp32 && onednn::serves_fp32() ? std::optional(at::kFloat) : std::nullopt;
}

}  // namespace

LinearOfOne::LinearOfOne() = default;
LinearOfOne::LinearOfOne(LinearOfOne&&) noexcept = default;
LinearOfOne& LinearOfOne::operator=(LinearOfOne&&) noexcept = default;
LinearOfOne::~LinearOfOne() = default;

at::Tensor LinearOfOne::operator()(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (!is_prepared_) {
    type_ = type_for_onednn(weight);
    if (type_) packed_ = onednn::pack(weight.to(*type_), bias.defined() ? bias.to(*type_) : bias);
    is_prepared_ = true;
  }
  if (packed_ == nullptr) return linear(x, weight, bias);
  const ProfileScope scope("gyre::linear");
  const at::Tensor row = x.to(*type_).contiguous(), result = result_like(row, weight.size(0));
  packed_->multiply(row.data_ptr(), result.data_ptr());
  return result.to(x.scalar_type());
}

}  // namespace gyre
