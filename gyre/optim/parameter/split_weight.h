// An fp32 weight in two halves: the bf16 version that layers read, and what rounding took from the weight, 16 bits. An
// optimizer that keeps the second alone, beside a version that is there anyway, needs half the memory for its masters.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "gyre/tensors/matrix_block.h"

namespace gyre {

// One parameter's, all of the same shape. The weight is the number whose bits are those of `version`, times 2^16, plus
// `rest`; so it comes back exactly. Where it lies in the middle of two bf16 values and its version, rounded to even, is
// the lower one, 16 bits do not hold the rest: the weight is then moved by its last bit.
struct SplitWeight {
  at::Tensor version;  // bf16
  at::Tensor rest;     // int16, changed in place
  at::Tensor next;     // bf16: where the version that an update makes is written; may be `version`
};

// The weight as a tensor of its own, fp32.
at::Tensor joined(const SplitWeight& weight);
// From fp32: `next` and `rest` become the weight.
void split(const at::Tensor& value, const SplitWeight& weight);
// The rows of a block, as views.
SplitWeight block_of(const MatrixBlock& block, const SplitWeight& weight);

namespace portable {
at::Tensor joined(const SplitWeight& weight);
void split(const at::Tensor& value, const SplitWeight& weight);
}  // namespace portable

// parameter.step on a weight in halves: by a step of its own for such weights, which takes one pass, where there is
// one.
template <typename Parameter, typename Config, typename Context>
void step_on(const SplitWeight& weight, Parameter& parameter, const Config& config, const at::Tensor& gradient,
             const Context& context) {
  if constexpr (requires { parameter.step(config, weight, gradient, context); }) {
    parameter.step(config, weight, gradient, context);
  } else {
    const at::Tensor whole = joined(weight);
    parameter.step(config, whole, gradient, context);
    split(whole, weight);
  }
}

}  // namespace gyre
