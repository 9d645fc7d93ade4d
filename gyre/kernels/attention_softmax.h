// Softmax over the keys that a query may see: all of them or, if causal, those up to its own position.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gyre {

// scores: (n, rows, keys), contiguous; row t of each matrix becomes the softmax of scale * scores[t, visible], and zero
// elsewhere. If causal, the rows are the last positions, so the last row sees all keys.
void attention_softmax_in_place(at::Tensor& scores, double scale, bool causal);
// grad: gradient of the probabilities P, contiguous; becomes the gradient of the scores,
// scale * P * (grad - sum(grad * P)).
void attention_softmax_backward_in_place(at::Tensor& grad, const at::Tensor& probabilities, double scale, bool causal);

namespace cpu {

// A row's probabilities are 2^(log2(e) * scale * score - shift) * factor.
struct SoftmaxRow {
  float shift = 0, factor = 0;
};

// attention_softmax_in_place for one matrix in bf16. scratch: whole_lanes(keys) elements. softmax: gets every row's
// shift and factor.
void attention_softmax(c10::BFloat16* scores, float* scratch, SoftmaxRow* softmax, int64_t rows, int64_t keys,
                       double scale, bool causal);
// scores: as before the softmax; become the same probabilities as in the forward, to the bit. grad: gradient of the
// probabilities; becomes the gradient of the scores.
void attention_softmax_backward(c10::BFloat16* grad, c10::BFloat16* scores, const SoftmaxRow* softmax, int64_t rows,
                                int64_t keys, double scale, bool causal);
// The same for a tile: some of the keys. row_sums: every row's sum(grad * P) over all of its keys. If causal, the last
// row sees all keys of the tile.
void attention_softmax_backward_of_tile(c10::BFloat16* grad, c10::BFloat16* scores, const SoftmaxRow* softmax,
                                        const float* row_sums, int64_t rows, int64_t keys, double scale, bool causal);
// Computes these sums without P: sum(grad * P) = sum(grad_output * output) (Dao et al., 2022, appendix B.2).
// grad_output: (rows, size), contiguous. output: rows of `size` elements, `stride` elements from one to the next.
void attention_row_sums(const c10::BFloat16* grad_output, const c10::BFloat16* output, int64_t stride, int64_t rows,
                        int64_t size, float* row_sums);

}  // namespace cpu

namespace portable {
void attention_softmax_in_place(at::Tensor& scores, double scale, bool causal);
void attention_softmax_backward_in_place(at::Tensor& grad, const at::Tensor& probabilities, double scale, bool causal);
}  // namespace portable

}  // namespace gyre
