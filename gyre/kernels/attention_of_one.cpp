#include "gyre/kernels/attention_of_one.h"

#include <ATen/ATen.h>

#include <cmath>

#include "gyre/kernels/portable.h"

namespace gyre {

at::Tensor attention_of_one(const HeadTensors& of) {
  const int64_t batch = of.query.size(0), heads = of.query.size(1), size = of.query.size(3);
  const int64_t shared = batch * of.key.size(1), group = heads / of.key.size(1);
  const at::Tensor keys = of.key.flatten(0, 1), values = of.value.flatten(0, 1);
  // The queries that share keys and values are the rows of one product.
  const at::Tensor queries = of.query.reshape({shared, group, size});
  const at::Tensor scores = at::bmm(queries, keys.transpose(1, 2)).to(portable::wide_type(of.query));
  const at::Tensor probabilities = at::softmax(scores * (1.0 / std::sqrt(static_cast<double>(size))), -1);
  return at::bmm(probabilities.to(values.scalar_type()), values).view({batch, 1, heads * size});
}

}  // namespace gyre
