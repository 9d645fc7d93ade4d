// Softmax over the keys that a query may see: those up to its own position.
#pragma once

#include <ATen/core/Tensor.h>

namespace gyre {

// scores: (n, context, context), contiguous; row t of each matrix becomes softmax(scale * scores[t, 0..t]), zero
// beyond.
void causal_softmax_in_place(at::Tensor& scores, double scale);
// grad: by the probabilities, contiguous; becomes the gradient by the scores, scale * P * (grad - sum(grad * P)).
void causal_softmax_backward_in_place(at::Tensor& grad, const at::Tensor& probabilities, double scale);

}  // namespace gyre
