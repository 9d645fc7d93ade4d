// Cross-entropy of rows of logits, and its gradient by them in one go.
#pragma once

#include <ATen/core/Tensor.h>

namespace gyre {

// logits: (rows, vocabulary), overwritten by their gradient where each row's loss counts `weight`:
// weight * (softmax - onehot). targets: (rows) int64. Returns the sum of the rows' losses, 0-dim fp64. Works through
// the rows one by one, or elsewhere in pieces, so that no second tensor of the logits' size is needed.
at::Tensor cross_entropy_in_place(at::Tensor& logits, const at::Tensor& targets, double weight);

namespace portable {
at::Tensor cross_entropy_in_place(at::Tensor& logits, const at::Tensor& targets, double weight);
}  // namespace portable

}  // namespace gyre
