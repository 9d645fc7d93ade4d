#include "gyre/kernels/attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "gyre/kernels/attention_blocks.h"
#include "gyre/kernels/attention_softmax.h"
#include "gyre/kernels/bf16/attention.h"
#include "gyre/kernels/bf16/product.h"
#include "gyre/kernels/matrix_product.h"
#include "gyre/kernels/rows.h"
#include "gyre/kernels/sdpa.h"
#include "gyre/tensors/profile_scope.h"
#include "gyre/tensors/wide_type.h"

namespace gyre {
namespace {

// (batch, heads, context, size), possibly a view -> (batch * heads, context, size), contiguous
at::Tensor by_head(const at::Tensor& x) {
  const at::Tensor contiguous = x.is_contiguous() ? x : at::empty(x.sizes(), x.options());
  if (!x.is_contiguous()) copy_head_rows(contiguous, x);
  return contiguous.view({x.size(0) * x.size(1), x.size(2), x.size(3)});
}
HeadTensors by_head(const HeadTensors& inputs) {
  return {by_head(inputs.query), by_head(inputs.key), by_head(inputs.value)};
}

HeadTensors wide(const HeadTensors& inputs) {
  return {inputs.query.to(at::kFloat), inputs.key.to(at::kFloat), inputs.value.to(at::kFloat)};
}

// Stacks the rows of all query heads that share a key-value head, so that one matrix product serves them:
// (batch * query heads, context, n) -> (batch * key-value heads, query / key_value * context, n).
// key_value_heads: those of the whole batch.
at::Tensor grouped(const at::Tensor& x, int64_t key_value_heads) {
  const int64_t group = x.size(0) / key_value_heads;
  return x.reshape({key_value_heads, group * x.size(1), x.size(2)});
}

using Block = AttentionBlock;

at::Tensor queries(const at::Tensor& x, const Block& block) {
  return x.narrow(1, block.first, block.rows);
}
at::Tensor keys(const at::Tensor& x, const Block& block) {
  return x.narrow(1, 0, block.seen);
}

double scale_of(const HeadTensors& inputs) {
  return attention_scale(inputs.query.size(-1));
}

// The block's softmax probabilities: (batch * query heads, rows, seen).
at::Tensor probabilities_of(const Block& block, const HeadTensors& inputs, bool causal) {
  at::Tensor scores =
      matrix_product(grouped(queries(inputs.query, block), inputs.key.size(0)), keys(inputs.key, block).transpose(1, 2))
          .view({inputs.query.size(0), block.rows, block.seen});
  attention_softmax_in_place(scores, scale_of(inputs), causal);
  return scores;
}

// A gradient summed over blocks of queries, from the last block, which sees all keys, to the first. Sums several blocks
// in fp32; a single block is returned as it is.
class BlockSum {
 public:
  BlockSum(const at::Tensor& like, size_t blocks) : like_(like), single_(blocks == 1) {}
  void add(const at::Tensor& part) {
    if (sum_.defined()) {
      add_keys(sum_, part);
    } else if (single_) {
      sum_ = part;
    } else {
      sum_ = at::empty_like(part, part.options().dtype(wide_type(part)));
      set_keys(sum_, part);
    }
  }
  at::Tensor take() { return sum_.to(like_.scalar_type()); }

 private:
  const at::Tensor& like_;
  bool single_;
  at::Tensor sum_;
};

}  // namespace

at::Tensor heads_of(const at::Tensor& x, int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

HeadTensors split_heads(const at::Tensor& qkv, const AttentionHeads& heads) {
  const at::Tensor all = heads_of(qkv, heads.query + 2 * heads.key_value);
  return {all.narrow(1, 0, heads.query), all.narrow(1, heads.query, heads.key_value),
          all.narrow(1, heads.query + heads.key_value, heads.key_value)};
}

Attended attention(const HeadTensors& inputs, bool causal) {
  const ProfileScope scope("gyre::attention");
  if (inputs.query.is_cuda() && sdpa::is_there()) return sdpa::attention(inputs, causal);
  Attended result;
  if (bf16::attention(inputs, causal, result)) return result;
  if (is_widened(inputs.query)) {
    result.output = portable::attention(wide(inputs), causal).to(inputs.query.scalar_type());
    return result;
  }
  result.output = portable::attention(inputs, causal);
  // On the meta device: the same outputs as on the CPU.
  const AttentionHeads heads{inputs.query.size(1), inputs.key.size(1)};
  if (inputs.query.is_meta() && softmax_bytes(heads, static_cast<double>(inputs.query.element_size())) > 0) {
    result.softmax_rows = at::empty({inputs.query.size(0), heads.query, inputs.query.size(2), 2},
                                    inputs.query.options().dtype(at::kFloat));
  }
  return result;
}

at::Tensor attention_backward(const at::Tensor& grad, const HeadTensors& inputs, const Attended& attended,
                              bool causal) {
  const ProfileScope scope("gyre::attention");
  if (attended.recorded.defined()) return sdpa::attention_backward(grad, inputs, attended);
  at::Tensor result;
  if (bf16::attention_backward(grad, inputs, attended, causal, result)) return result;
  if (is_widened(grad)) {
    return portable::attention_backward(grad.to(at::kFloat), wide(inputs), causal).to(grad.scalar_type());
  }
  return portable::attention_backward(grad, inputs, causal);
}

double softmax_bytes(const AttentionHeads& heads, double element_bytes) {
  const bool is_saved = bf16::cpu_serves() && element_bytes == sizeof(c10::BFloat16);
  return is_saved ? static_cast<double>(heads.query) * 2 * sizeof(float) : 0;
}

// What portable::attention_backward holds when it has found a block's gradient of the values.
double attention_working_bytes(const AttentionHeads& heads, double head_size, double context, bool causal,
                               double element_bytes) {
  if (softmax_bytes(heads, element_bytes) > 0) return 0;
  if (element_bytes == sizeof(c10::BFloat16) && widens_bf16()) {
    // In fp32: the gradient of the output, queries, keys and values and their gradients.
    const double wide =
        sizeof(float) * (3 * static_cast<double>(heads.query) + 4 * static_cast<double>(heads.key_value));
    return context * head_size * wide + attention_working_bytes(heads, head_size, context, causal, sizeof(float));
  }
  const double blocks = std::ceil(context / kBlockQueries), rows = std::min<double>(context, kBlockQueries);
  // The last block sees all keys, but may be short. Then, if causal, the one before it may be larger.
  const double last = context - (blocks - 1) * kBlockQueries;
  const double scores = causal && blocks > 1 ? std::max(last * context, rows * (context - last)) : rows * context;
  const double queries = static_cast<double>(heads.query) * head_size,
               keys = static_cast<double>(heads.key_value) * head_size;
  const bool is_grouped = heads.query > heads.key_value;
  // Queries, keys, values and the gradient of the output, by heads.
  const double copies = context * (2 * queries + 2 * keys);
  // Probabilities and the gradient of the scores; the gradient of the queries and, if they are stacked, of the output.
  const double of_block = 2 * static_cast<double>(heads.query) * scores + (is_grouped ? 2 : 1) * queries * rows;
  // The gradients of keys and values: sums in fp32, and a block's part.
  const double part = context * keys * element_bytes;
  const double sums =
      blocks > 1 ? 2 * context * keys * std::max<double>(element_bytes, sizeof(float)) + part : 2 * part;
  return (copies + of_block) * element_bytes + sums;
}

at::Tensor portable::attention(const HeadTensors& inputs, bool causal) {
  const int64_t batch = inputs.query.size(0), heads = inputs.query.size(1), context = inputs.query.size(2),
                size = inputs.query.size(3);
  const HeadTensors by_heads = by_head(inputs);
  at::Tensor result = at::empty({batch, context, heads * size}, inputs.query.options());
  for (const Block& block : attention_blocks(context, causal)) {
    const at::Tensor probabilities = grouped(probabilities_of(block, by_heads, causal), by_heads.key.size(0));
    const at::Tensor output =
        matrix_product(probabilities, keys(by_heads.value, block)).view({batch, heads, block.rows, size});
    copy_head_rows(queries(result.view({batch, context, heads, size}), block), output.transpose(1, 2));
  }
  return result;
}

at::Tensor portable::attention_backward(const at::Tensor& grad, const HeadTensors& inputs, bool causal) {
  const AttentionHeads heads{inputs.query.size(1), inputs.key.size(1)};
  const int64_t batch = inputs.query.size(0), context = inputs.query.size(2), size = inputs.query.size(3);
  const HeadTensors by_heads = by_head(inputs);
  const at::Tensor grad_output = by_head(heads_of(grad, heads.query));
  const at::Tensor result = at::empty({batch, context, (heads.query + 2 * heads.key_value) * size}, grad.options());
  const HeadTensors to = split_heads(result, heads);
  const std::vector<Block> blocks = attention_blocks(context, causal);
  BlockSum grad_key(by_heads.key, blocks.size()), grad_value(by_heads.value, blocks.size());
  for (const Block& block : blocks) {
    const at::Tensor probabilities = probabilities_of(block, by_heads, causal);
    const at::Tensor from_output = grouped(queries(grad_output, block), by_heads.key.size(0));
    at::Tensor grad_scores =
        matrix_product(from_output, keys(by_heads.value, block).transpose(1, 2)).view(probabilities.sizes());
    gyre::attention_softmax_backward_in_place(grad_scores, probabilities, scale_of(inputs), causal);
    const at::Tensor scores = grouped(grad_scores, by_heads.key.size(0));
    const at::Tensor by_scores =
        matrix_product(scores, keys(by_heads.key, block)).view({batch, heads.query, block.rows, size});
    copy_head_rows(to.query.narrow(2, block.first, block.rows), by_scores);
    grad_key.add(matrix_product(scores.transpose(1, 2), grouped(queries(by_heads.query, block), by_heads.key.size(0))));
    grad_value.add(matrix_product(grouped(probabilities, by_heads.key.size(0)).transpose(1, 2), from_output));
  }
  copy_head_rows(to.key, grad_key.take().view(to.key.sizes()));
  copy_head_rows(to.value, grad_value.take().view(to.value.sizes()));
  return result;
}

}  // namespace gyre
