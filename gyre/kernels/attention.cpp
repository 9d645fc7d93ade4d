#include "gyre/kernels/attention.h"

#include <ATen/ATen.h>

#include <vector>

#include "gyre/kernels/attention_blocks.h"
#include "gyre/kernels/attention_softmax.h"
#include "gyre/kernels/bf16/attention.h"
#include "gyre/kernels/portable.h"
#include "gyre/kernels/rows.h"
#include "gyre/tensors/profile_scope.h"

namespace gyre {
namespace {

// (batch, context, heads * size) -> (batch * heads, context, size)
at::Tensor by_head(const at::Tensor& x, int64_t heads) {
  const int64_t batch = x.size(0), context = x.size(1), size = x.size(2) / heads;
  at::Tensor result = at::empty({batch, heads, context, size}, x.options());
  copy_head_rows(result, x.view({batch, context, heads, size}).transpose(1, 2));
  return result.view({batch * heads, context, size});
}

// And back: a view.
at::Tensor by_position(const at::Tensor& x, int64_t heads) {
  return x.view({x.size(0) / heads, heads, x.size(1), x.size(2)}).transpose(1, 2);
}

// The rows of all heads that share a key and value stand below each other, so that one product serves them:
// (batch * query heads, context, n) -> (batch * key-value heads, query / key_value * context, n).
at::Tensor grouped(const at::Tensor& x, const AttentionHeads& heads) {
  const int64_t group = heads.query / heads.key_value;
  return x.reshape({x.size(0) / group, group * x.size(1), x.size(2)});
}

using Block = AttentionBlock;

at::Tensor queries(const at::Tensor& x, const Block& block) {
  return x.narrow(1, block.first, block.rows);
}
at::Tensor keys(const at::Tensor& x, const Block& block) {
  return x.narrow(1, 0, block.seen);
}

double scale_of(const HeadTensors& of) {
  return attention_scale(of.query.size(2));
}

// (batch * query heads, rows, seen)
at::Tensor probabilities_of(const Block& block, const HeadTensors& of, const AttentionHeads& heads, bool causal) {
  at::Tensor scores = at::bmm(grouped(queries(of.query, block), heads), keys(of.key, block).transpose(1, 2))
                          .view({of.query.size(0), block.rows, block.seen});
  attention_softmax_in_place(scores, scale_of(of), causal);
  return scores;
}

// A sum over blocks of queries, from the last, which sees all keys, to the first: of several in fp32, of one that one
// itself.
class BlockSum {
 public:
  BlockSum(const at::Tensor& like, size_t blocks) : like_(like), single_(blocks == 1) {}
  void add(const at::Tensor& part) {
    if (sum_.defined()) {
      add_keys(sum_, part);
    } else if (single_) {
      sum_ = part;
    } else {
      sum_ = at::empty_like(part, part.options().dtype(portable::wide_type(part)));
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

HeadTensors split_heads(const at::Tensor& qkv, const AttentionHeads& heads) {
  const ProfileScope scope("gyre::attention");
  const int64_t size = qkv.size(2) / (heads.query + 2 * heads.key_value);
  const int64_t queries = heads.query * size, keys = heads.key_value * size;
  return {by_head(qkv.narrow(2, 0, queries), heads.query), by_head(qkv.narrow(2, queries, keys), heads.key_value),
          by_head(qkv.narrow(2, queries + keys, keys), heads.key_value)};
}

at::Tensor merge_heads(const HeadTensors& grad, const AttentionHeads& heads) {
  const ProfileScope scope("gyre::attention");
  const int64_t batch = grad.query.size(0) / heads.query, context = grad.query.size(1), size = grad.query.size(2);
  at::Tensor result = at::empty({batch, context, heads.query + 2 * heads.key_value, size}, grad.query.options());
  copy_head_rows(result.narrow(2, 0, heads.query), by_position(grad.query, heads.query));
  copy_head_rows(result.narrow(2, heads.query, heads.key_value), by_position(grad.key, heads.key_value));
  copy_head_rows(result.narrow(2, heads.query + heads.key_value, heads.key_value),
                 by_position(grad.value, heads.key_value));
  return result.view({batch, context, -1});
}

at::Tensor attention(const HeadTensors& of, const AttentionHeads& heads, bool causal) {
  const ProfileScope scope("gyre::attention");
  at::Tensor result;
  return bf16::attention(of, heads, causal, result) ? result : portable::attention(of, heads, causal);
}

HeadTensors attention_backward(const at::Tensor& grad, const HeadTensors& of, const AttentionHeads& heads,
                               bool causal) {
  const ProfileScope scope("gyre::attention");
  HeadTensors result;
  const bool done = bf16::attention_backward(grad, of, heads, causal, result);
  return done ? result : portable::attention_backward(grad, of, heads, causal);
}

at::Tensor portable::attention(const HeadTensors& of, const AttentionHeads& heads, bool causal) {
  const int64_t batch = of.query.size(0) / heads.query, context = of.query.size(1), size = of.query.size(2);
  at::Tensor result = at::empty({batch, context, heads.query, size}, of.query.options());
  for (const Block& block : attention_blocks(context, causal)) {
    const at::Tensor probabilities = probabilities_of(block, of, heads, causal);
    const at::Tensor output = at::bmm(grouped(probabilities, heads), keys(of.value, block));
    copy_head_rows(result.narrow(1, block.first, block.rows),
                   by_position(output.view({batch * heads.query, block.rows, size}), heads.query));
  }
  return result.view({batch, context, heads.query * size});
}

HeadTensors portable::attention_backward(const at::Tensor& grad, const HeadTensors& of, const AttentionHeads& heads,
                                         bool causal) {
  const at::Tensor grad_output = by_head(grad, heads.query);
  const std::vector<Block> blocks = attention_blocks(of.query.size(1), causal);
  at::Tensor grad_query = at::empty(of.query.sizes(), of.query.options());
  BlockSum grad_key(of.key, blocks.size()), grad_value(of.value, blocks.size());
  for (const Block& block : blocks) {
    const at::Tensor probabilities = probabilities_of(block, of, heads, causal);
    const at::Tensor from_output = grouped(queries(grad_output, block), heads);
    at::Tensor grad_scores = at::bmm(from_output, keys(of.value, block).transpose(1, 2)).view(probabilities.sizes());
    attention_softmax_backward_in_place(grad_scores, probabilities, scale_of(of), causal);
    const at::Tensor scores = grouped(grad_scores, heads);
    const at::Tensor by_scores = at::bmm(scores, keys(of.key, block));
    copy_head_rows(queries(grad_query, block).unsqueeze(0),
                   by_scores.view({1, of.query.size(0), block.rows, of.query.size(2)}));
    grad_key.add(at::bmm(scores.transpose(1, 2), grouped(queries(of.query, block), heads)));
    grad_value.add(at::bmm(grouped(probabilities, heads).transpose(1, 2), from_output));
  }
  return {grad_query, grad_key.take(), grad_value.take()};
}

}  // namespace gyre
