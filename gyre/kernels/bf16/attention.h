// Attention in bf16 with the matrix products of product.h, one head after the other: a block's scores stay in the
// core's cache until the last product has read them. If the CPU, the build, the types or the device do not allow it,
// these functions return false, and the caller uses its portable path.
#pragma once

#include <ATen/core/Tensor.h>

#include "gyre/kernels/attention.h"

namespace gyre::bf16 {

// As gyre::attention, into `result`. Returns false if not supported.
bool attention(const HeadTensors& inputs, bool causal, Attended& result);
// As gyre::attention_of_one, into `result`. Returns false if not supported.
bool attention_of_one(const HeadTensors& inputs, int64_t seen, at::Tensor& result);
// As gyre::attention_backward, into `result`. Returns false if not supported.
bool attention_backward(const at::Tensor& grad, const HeadTensors& inputs, const Attended& attended, bool causal,
                        at::Tensor& result);

}  // namespace gyre::bf16
