// Attention in bf16 by the products beside, one head after the other: a block's scores stay in the core's cache from
// their product to the last one that reads them. Where it cannot serve (what the CPU or the build lacks, other
// types and devices) it says so, and the caller has its portable path.
#pragma once

#include <ATen/core/Tensor.h>

#include "gyre/kernels/attention.h"

namespace gyre::bf16 {

// As gyre::attention, into `result`. False: it cannot.
bool attention(const HeadTensors& of, bool causal, Attended& result);
// As gyre::attention_backward, into `result`. False: it cannot.
bool attention_backward(const at::Tensor& grad, const HeadTensors& of, const Attended& attended, bool causal,
                        at::Tensor& result);

}  // namespace gyre::bf16
