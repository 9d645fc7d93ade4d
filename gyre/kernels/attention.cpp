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

// q k^T: (batch * query heads, rows, seen)
at::Tensor scores_of(const Block& block, const HeadTensors& of, const AttentionHeads& heads) {
  return at::bmm(grouped(queries(of.query, block), heads), keys(of.key, block).transpose(1, 2))
      .view({of.query.size(0), block.rows, block.seen});
}

// Those of a block's rows.
SoftmaxRows narrow(const SoftmaxRows& rows, const Block& block) {
  return {queries(rows.shift, block), queries(rows.factor, block)};
}

// Sums over a head of the output, times its gradient: (batch * query heads, context).
at::Tensor dots_of(const at::Tensor& grad, const at::Tensor& output, int64_t heads) {
  const auto wide = portable::wide_type(grad);
  const at::Tensor products = grad.to(wide) * output.to(wide);
  return products.view({grad.size(0), grad.size(1), heads, -1}).sum(-1).transpose(1, 2).reshape({-1, grad.size(1)});
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

Attended attention(const HeadTensors& of, const AttentionHeads& heads, bool causal) {
  const ProfileScope scope("gyre::attention");
  Attended result;
  return bf16::attention(of, heads, causal, result) ? result : portable::attention(of, heads, causal);
}

HeadTensors attention_backward(const at::Tensor& grad, const HeadTensors& of, const Attended& attended,
                               const AttentionHeads& heads, bool causal) {
  const ProfileScope scope("gyre::attention");
  HeadTensors result;
  const bool done = bf16::attention_backward(grad, of, attended, heads, causal, result);
  return done ? result : portable::attention_backward(grad, of, attended, heads, causal);
}

Attended portable::attention(const HeadTensors& of, const AttentionHeads& heads, bool causal) {
  const int64_t batch = of.query.size(0) / heads.query, context = of.query.size(1), size = of.query.size(2);
  const at::Tensor output = at::empty({batch, context, heads.query, size}, of.query.options());
  const auto numbers = [&] {
    return at::empty({of.query.size(0), context}, of.query.options().dtype(portable::wide_type(of.query)));
  };
  const SoftmaxRows rows{numbers(), numbers()};
  for (const Block& block : attention_blocks(context, causal)) {
    at::Tensor probabilities = scores_of(block, of, heads);
    const SoftmaxRows of_block = gyre::attention_softmax_in_place(probabilities, scale_of(of), causal);
    const SoftmaxRows place = narrow(rows, block);
    place.shift.copy_(of_block.shift);
    place.factor.copy_(of_block.factor);
    const at::Tensor by_head = at::bmm(grouped(probabilities, heads), keys(of.value, block));
    copy_head_rows(output.narrow(1, block.first, block.rows),
                   by_position(by_head.view({batch * heads.query, block.rows, size}), heads.query));
  }
  return {output.view({batch, context, heads.query * size}), rows};
}

HeadTensors portable::attention_backward(const at::Tensor& grad, const HeadTensors& of, const Attended& attended,
                                         const AttentionHeads& heads, bool causal) {
  const at::Tensor grad_output = by_head(grad, heads.query);
  const at::Tensor dots = dots_of(grad, attended.output, heads.query);
  const std::vector<Block> blocks = attention_blocks(of.query.size(1), causal);
  at::Tensor grad_query = at::empty(of.query.sizes(), of.query.options());
  BlockSum grad_key(of.key, blocks.size()), grad_value(of.value, blocks.size());
  for (const Block& block : blocks) {
    at::Tensor probabilities = scores_of(block, of, heads);
    const at::Tensor from_output = grouped(queries(grad_output, block), heads);
    at::Tensor grad_scores = at::bmm(from_output, keys(of.value, block).transpose(1, 2)).view(probabilities.sizes());
    gyre::attention_softmax_backward_in_place(grad_scores, probabilities, narrow(attended.rows, block),
                                              queries(dots, block), scale_of(of), causal);
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
