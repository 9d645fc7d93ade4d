// Softmax over the keys that a query may see: all of them or, causally, those up to its own position.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gyre {

// scores: (n, rows, keys), contiguous; row t of each matrix becomes the softmax of scale * scores[t, visible], zero
// elsewhere. Causal: the rows are those of the last positions, so that the last one sees all keys.
void attention_softmax_in_place(at::Tensor& scores, double scale, bool causal);
// grad: by the probabilities, contiguous; becomes the gradient by the scores, scale * P * (grad - sum(grad * P)).
void attention_softmax_backward_in_place(at::Tensor& grad, const at::Tensor& probabilities, double scale, bool causal);

namespace cpu {

// What makes a row's probabilities of its scores: 2^(log2(e) * scale * score - shift) * factor.
struct SoftmaxRow {
  float shift = 0, factor = 0;
};

// The same of one matrix in bf16. scratch: a row's keys, in whole lanes. into: what was found, of each row.
void attention_softmax(c10::BFloat16* scores, float* scratch, SoftmaxRow* into, int64_t rows, int64_t keys,
                       double scale, bool causal);
// scores: as they were before the softmax; become the same probabilities again, to the bit. grad: by those; becomes the
// gradient by the scores.
void attention_softmax_backward(c10::BFloat16* grad, c10::BFloat16* scores, const SoftmaxRow* of, int64_t rows,
                                int64_t keys, double scale, bool causal);
// The same for a part of the keys. row_sums: sum(grad * P) of each row over all of its keys, which the part lacks.
// Causal: the last row sees all keys of the part, but none behind it.
void attention_softmax_backward_of_part(c10::BFloat16* grad, c10::BFloat16* scores, const SoftmaxRow* of,
                                        const float* row_sums, int64_t rows, int64_t keys, double scale, bool causal);
// Those sums, by another way: sum(grad * P) = sum(grad_output * output) (Dao et al., 2022, appendix B.2). Rows of
// `size` elements, those of grad_output without gaps, those of output `stride` elements apart.
void attention_row_sums(const c10::BFloat16* grad_output, const c10::BFloat16* output, int64_t stride, int64_t rows,
                        int64_t size, float* row_sums);

}  // namespace cpu

namespace portable {
void attention_softmax_in_place(at::Tensor& scores, double scale, bool causal);
void attention_softmax_backward_in_place(at::Tensor& grad, const at::Tensor& probabilities, double scale, bool causal);
}  // namespace portable

}  // namespace gyre
