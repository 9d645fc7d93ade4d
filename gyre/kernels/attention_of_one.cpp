#include "gyre/kernels/attention_of_one.h"

#include <ATen/ATen.h>

#include "gyre/kernels/attention_blocks.h"
#include "gyre/kernels/matrix_product.h"
#include "gyre/tensors/wide_type.h"

namespace gyre {

at::Tensor attention_of_one(const HeadTensors& inputs) {
  const int64_t batch = inputs.query.size(0), heads = inputs.query.size(1), size = inputs.query.size(3);
  const int64_t key_value_heads = batch * inputs.key.size(1), group = heads / inputs.key.size(1);
  const at::Tensor keys = inputs.key.flatten(0, 1), values = inputs.value.flatten(0, 1);
  // The queries that share keys and values are the rows of one matrix product.
  const at::Tensor queries = inputs.query.reshape({key_value_heads, group, size});
  const at::Tensor scores = matrix_product(queries, keys.transpose(1, 2)).to(wide_type(inputs.query));
  const at::Tensor probabilities = at::softmax(scores * attention_scale(size), -1);
  return matrix_product(probabilities.to(values.scalar_type()), values).view({batch, 1, heads * size});
}

}  // namespace gyre
