#include "gyre/kernels/embedding.h"

#include <ATen/ATen.h>

#include "gyre/kernels/portable.h"
#include "gyre/tensors/profile_scope.h"

namespace gyre {
namespace {

// A plain loop, because index_add_ sets up an iterator for every row on the CPU.
template <typename Element>
void add_rows(const at::Tensor& grad, const at::Tensor& indices, at::Tensor& table_gradient) {
  const at::Tensor rows = portable::rows_of(grad).contiguous(), flat = indices.reshape({-1}).contiguous();
  const int64_t width = rows.size(1);
  const auto* from = rows.data_ptr<Element>();
  const auto* index = flat.data_ptr<int64_t>();
  auto* table = table_gradient.data_ptr<float>();
  for (int64_t row = 0; row < rows.size(0); ++row) {
    float* to = table + index[row] * width;
    for (int64_t i = 0; i < width; ++i) to[i] += static_cast<float>(from[row * width + i]);
  }
}

}  // namespace

at::Tensor embed(const at::Tensor& table, const at::Tensor& indices) {
  const ProfileScope scope("gyre::embedding");
  if (table.is_cpu()) return at::embedding(table, indices);  // copies whole rows
  return portable::embed(table, indices);
}

void embed_backward(const at::Tensor& grad, const at::Tensor& indices, at::Tensor& table_gradient) {
  const ProfileScope scope("gyre::embedding");
  const bool fast = grad.is_cpu() && table_gradient.is_contiguous() && table_gradient.scalar_type() == at::kFloat;
  if (fast && grad.scalar_type() == at::kFloat) return add_rows<float>(grad, indices, table_gradient);
  if (fast && grad.scalar_type() == at::kBFloat16) return add_rows<at::BFloat16>(grad, indices, table_gradient);
  portable::embed_backward(grad, indices, table_gradient);
}

namespace portable {

at::Tensor embed(const at::Tensor& table, const at::Tensor& indices) {
  return table.index({indices});
}

void embed_backward(const at::Tensor& grad, const at::Tensor& indices, at::Tensor& table_gradient) {
  const at::Tensor index = indices.reshape({-1}), rows = rows_of(grad).to(table_gradient.scalar_type());
  if (grad.is_cuda()) {
    // It sorts the indices first; index_add_ would add with atomics, in an order that differs from run to run. unsafe:
    // skips the range checks, which are several kernels, since the forward has used the same indices.
    at::_index_put_impl_(table_gradient, {index}, rows, /*accumulate=*/true, /*unsafe=*/true);
  } else {
    table_gradient.index_add_(0, index, rows);
  }
}

}  // namespace portable

}  // namespace gyre
