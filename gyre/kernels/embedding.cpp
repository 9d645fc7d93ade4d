#include "gyre/kernels/embedding.h"

#include <ATen/ATen.h>

namespace gyre {
namespace {

// index_add_ costs an iterator a row on the CPU; this costs an addition.
template <typename Element>
void add_rows(const at::Tensor& grad, const at::Tensor& tokens, at::Tensor& table_gradient) {
  const int64_t width = grad.size(1);
  const auto* from = grad.data_ptr<Element>();
  const auto* token = tokens.data_ptr<int64_t>();
  auto* table = table_gradient.data_ptr<float>();
  for (int64_t row = 0; row < grad.size(0); ++row) {
    float* to = table + token[row] * width;
    for (int64_t i = 0; i < width; ++i) to[i] += static_cast<float>(from[row * width + i]);
  }
}

}  // namespace

at::Tensor embed(const at::Tensor& table, const at::Tensor& tokens) {
  return at::embedding(table, tokens);
}

void embed_backward(const at::Tensor& grad, const at::Tensor& tokens, at::Tensor& table_gradient) {
  const at::Tensor rows = grad.reshape({-1, grad.size(-1)}).contiguous();
  const at::Tensor flat = tokens.reshape({-1}).contiguous();
  const bool fast =
      rows.device().is_cpu() && table_gradient.is_contiguous() && table_gradient.scalar_type() == at::kFloat;
  if (fast && rows.scalar_type() == at::kFloat) {
    add_rows<float>(rows, flat, table_gradient);
  } else if (fast && rows.scalar_type() == at::kBFloat16) {
    add_rows<at::BFloat16>(rows, flat, table_gradient);
  } else {
    table_gradient.index_add_(0, flat, rows.to(table_gradient.scalar_type()));
  }
}

}  // namespace gyre
