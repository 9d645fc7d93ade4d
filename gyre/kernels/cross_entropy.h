// Cross-entropy of rows of logits and its gradient, in one call.
#pragma once

#include <ATen/core/Tensor.h>

namespace gyre {

// logits: (rows, vocabulary), overwritten with the gradient of `weight` times the sum of the rows' losses: weight *
// (softmax - onehot). targets: (rows) int64. Returns the sum of the rows' losses, without the weight, 0-dim fp64. Goes
// row by row, or on the portable path by pieces, so that no second tensor of the logits' size is needed.
at::Tensor cross_entropy_in_place(at::Tensor& logits, const at::Tensor& targets, double weight);
// Bytes of what it allocates: next to nothing where it has a kernel, else two pieces in fp32.
double cross_entropy_bytes(double rows, double vocabulary, bool on_host);

namespace portable {
at::Tensor cross_entropy_in_place(at::Tensor& logits, const at::Tensor& targets, double weight);
}  // namespace portable

}  // namespace gyre
