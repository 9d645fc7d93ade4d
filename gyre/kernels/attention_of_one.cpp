#include "gyre/kernels/attention_of_one.h"

#include <ATen/ATen.h>

#include <cmath>

#include "gyre/kernels/portable.h"

namespace gyre {

at::Tensor attention_of_one(const HeadTensors& of, const AttentionHeads& heads) {
  const int64_t size = of.query.size(2), shared = of.key.size(0);
  // The queries that share keys and values are the rows of one product.
  const at::Tensor queries = of.query.reshape({shared, heads.query / heads.key_value, size});
  const at::Tensor scores = at::bmm(queries, of.key.transpose(1, 2)).to(portable::wide_type(of.query));
  const at::Tensor probabilities = at::softmax(scores * (1.0 / std::sqrt(static_cast<double>(size))), -1);
  return at::bmm(probabilities.to(of.value.scalar_type()), of.value)
      .view({shared / heads.key_value, 1, heads.query * size});
}

}  // namespace gyre
