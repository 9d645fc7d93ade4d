// Softmax over the keys that a query may see: all of them or, causally, those up to its own position. A forward leaves
// two numbers of each row, from which a backward has the same probabilities again in one pass (Dao, 2023,
// FlashAttention-2, section 3.1, keeps one that is rounded).
#pragma once

#include <ATen/core/Tensor.h>

#include "gyre/kernels/attention.h"

namespace gyre {

// scores: (n, rows, keys), contiguous; row t of each matrix becomes the softmax of scale * scores[t, visible], zero
// elsewhere. Causal: the rows are those of the last positions, so that the last one sees all keys.
SoftmaxRows attention_softmax_in_place(at::Tensor& scores, double scale, bool causal);
// scores, grad: by the probabilities; both as scores above. scores become the probabilities P, grad the gradient by the
// scores, scale * P * (grad - dots), with dots (n, rows) each row's sum(grad * P).
void attention_softmax_backward_in_place(at::Tensor& grad, at::Tensor& scores, const SoftmaxRows& rows,
                                         const at::Tensor& dots, double scale, bool causal);

namespace cpu {
struct SoftmaxRowPointers {
  float *shift, *factor;
};
// The same of one matrix in bf16. scratch: a row's keys, in whole lanes.
void attention_softmax(c10::BFloat16* scores, float* scratch, const SoftmaxRowPointers& of, int64_t rows, int64_t keys,
                       double scale, bool causal);
void attention_softmax_backward(c10::BFloat16* grad, c10::BFloat16* scores, const SoftmaxRowPointers& of,
                                const float* dots, int64_t rows, int64_t keys, double scale, bool causal);
// sum_i a[row, i] b[row, i], of rows `stride` elements apart.
void row_dots(const c10::BFloat16* a, const c10::BFloat16* b, int64_t stride, int64_t rows, int64_t size, float* dots);
}  // namespace cpu

namespace portable {
SoftmaxRows attention_softmax_in_place(at::Tensor& scores, double scale, bool causal);
void attention_softmax_backward_in_place(at::Tensor& grad, at::Tensor& scores, const SoftmaxRows& rows,
                                         const at::Tensor& dots, double scale, bool causal);
}  // namespace portable

}  // namespace gyre
