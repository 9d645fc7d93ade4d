// Mean cross-entropy of a microbatch, and its gradient by the logits in one go.
#pragma once

#include <ATen/core/Tensor.h>

namespace gyre {

// logits: (rows, vocabulary), overwritten by the gradient of the mean loss by the logits, (softmax - onehot) / rows.
// targets: (rows) int64. Returns the mean loss, 0-dim fp32 (fp64 for fp64 logits). Works through the rows one by
// one, or elsewhere in pieces, so that no second tensor of the logits' size is needed.
at::Tensor cross_entropy_in_place(at::Tensor& logits, const at::Tensor& targets);
// grad_logits: what cross_entropy_in_place left; becomes the gradient of grad_loss (0-dim) times the loss.
void cross_entropy_backward_in_place(at::Tensor& grad_logits, const at::Tensor& grad_loss);

namespace portable {
at::Tensor cross_entropy_in_place(at::Tensor& logits, const at::Tensor& targets);
}  // namespace portable

}  // namespace gyre
