// Token embedding: rows of a table, and their gradient.
#pragma once

#include <ATen/core/Tensor.h>

namespace gyre {

// table: (rows, width); indices: int64 of any shape. Returns (..., width).
at::Tensor embed(const at::Tensor& table, const at::Tensor& indices);
// Adds each row of grad to the row of table_gradient (rows, width) that its index names, in the order of the indices.
void embed_backward(const at::Tensor& grad, const at::Tensor& indices, at::Tensor& table_gradient);

namespace portable {
at::Tensor embed(const at::Tensor& table, const at::Tensor& indices);
void embed_backward(const at::Tensor& grad, const at::Tensor& indices, at::Tensor& table_gradient);
}  // namespace portable

}  // namespace gyre
