// Attention by libtorch's scaled_dot_product_attention, which on GPUs takes a fused kernel (flash attention, Dao, 2023,
// or a memory-efficient one): no tensor of context x context, in one launch.
#pragma once

#include "gyre/kernels/attention.h"

namespace gyre::sdpa {

// Whether this libtorch has it (2.0 and newer).
bool is_there();

// What gyre::attention returns, with `recorded`. It marks the inputs as those that gradients are asked for.
Attended attention(const HeadTensors& inputs, bool causal);
// inputs: the tensors that the forward was given. Of one forward, it can be called once.
at::Tensor attention_backward(const at::Tensor& grad, const HeadTensors& inputs, const Attended& attended);

}  // namespace gyre::sdpa
