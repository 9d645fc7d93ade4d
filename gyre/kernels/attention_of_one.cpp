#include "gyre/kernels/attention_of_one.h"

#include <ATen/ATen.h>

#include "gyre/kernels/attention_blocks.h"
#include "gyre/kernels/attention_softmax.h"
#include "gyre/kernels/bf16/attention.h"
#include "gyre/kernels/matrix_product.h"

namespace gyre {

at::Tensor attention_of_one(const HeadTensors& inputs, int64_t seen) {
  at::Tensor result;
  if (bf16::attention_of_one(inputs, seen, result)) return result;
  const int64_t batch = inputs.query.size(0), heads = inputs.query.size(1), size = inputs.query.size(3);
  const int64_t key_value_heads = batch * inputs.key.size(1), group = heads / inputs.key.size(1);
  const at::Tensor keys = inputs.key.narrow(2, 0, seen).flatten(0, 1);
  const at::Tensor values = inputs.value.narrow(2, 0, seen).flatten(0, 1);
  // The queries that share keys and values are the rows of one matrix product.
  const at::Tensor queries = inputs.query.reshape({key_value_heads, group, size});
  at::Tensor probabilities = matrix_product(queries, keys.transpose(1, 2));
  attention_softmax_in_place(probabilities, attention_scale(size), /*causal=*/false);
  return matrix_product(probabilities, values).view({batch, 1, heads * size});
}

}  // namespace gyre
