#include "gyre/kernels/attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "gyre/kernels/attention_softmax.h"
#include "gyre/kernels/portable.h"
#include "gyre/tensors/profile_scope.h"

namespace gyre {
namespace {

// (batch, context, heads * size) -> (batch * heads, context, size)
at::Tensor by_head(const at::Tensor& x, int64_t heads) {
  const int64_t batch = x.size(0), context = x.size(1), size = x.size(2) / heads;
  return x.view({batch, context, heads, size}).transpose(1, 2).reshape({batch * heads, context, size});
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

// Queries of one block. Smaller ones skip more of what is not seen, and make smaller products.
constexpr int64_t kQueries = 128;

// Rows [first, first + rows) of every head's scores, and the keys that they see: [0, seen).
struct Block {
  int64_t first = 0, rows = 0, seen = 0;
  at::Tensor queries(const at::Tensor& x) const { return x.narrow(1, first, rows); }
  at::Tensor keys(const at::Tensor& x) const { return x.narrow(1, 0, seen); }
};

std::vector<Block> blocks_of(int64_t context, bool causal) {
  std::vector<Block> blocks;
  for (int64_t first = 0; first < context; first += kQueries) {
    const int64_t rows = std::min(kQueries, context - first);
    blocks.push_back({first, rows, causal ? first + rows : context});
  }
  return blocks;
}

double scale_of(const HeadTensors& of) {
  return 1.0 / std::sqrt(static_cast<double>(of.query.size(2)));
}

// (batch * query heads, rows, seen)
at::Tensor probabilities_of(const Block& block, const HeadTensors& of, const AttentionHeads& heads, bool causal) {
  at::Tensor scores = at::bmm(grouped(block.queries(of.query), heads), block.keys(of.key).transpose(1, 2))
                          .view({of.query.size(0), block.rows, block.seen});
  attention_softmax_in_place(scores, scale_of(of), causal);
  return scores;
}

// A sum over blocks that each have a part of the rows: of several in fp32, of one that one itself.
class BlockSum {
 public:
  BlockSum(const at::Tensor& like, size_t blocks) : like_(like), single_(blocks == 1) {
    if (!single_) sum_ = at::zeros_like(like, like.options().dtype(portable::wide_type(like)));
  }
  void add(const Block& block, const at::Tensor& part) {
    if (single_) {
      sum_ = part;
    } else {
      block.keys(sum_).add_(part);
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
  result.narrow(2, 0, heads.query).copy_(by_position(grad.query, heads.query));
  result.narrow(2, heads.query, heads.key_value).copy_(by_position(grad.key, heads.key_value));
  result.narrow(2, heads.query + heads.key_value, heads.key_value).copy_(by_position(grad.value, heads.key_value));
  return result.view({batch, context, -1});
}

at::Tensor attention(const HeadTensors& of, const AttentionHeads& heads, bool causal) {
  const ProfileScope scope("gyre::attention");
  const int64_t batch = of.query.size(0) / heads.query, context = of.query.size(1), size = of.query.size(2);
  at::Tensor result = at::empty({batch, context, heads.query, size}, of.query.options());
  for (const Block& block : blocks_of(context, causal)) {
    const at::Tensor probabilities = probabilities_of(block, of, heads, causal);
    const at::Tensor output = at::bmm(grouped(probabilities, heads), block.keys(of.value));
    block.queries(result).copy_(by_position(output.view({batch * heads.query, block.rows, size}), heads.query));
  }
  return result.view({batch, context, heads.query * size});
}

HeadTensors attention_backward(const at::Tensor& grad, const HeadTensors& of, const AttentionHeads& heads,
                               bool causal) {
  const ProfileScope scope("gyre::attention");
  const at::Tensor grad_output = by_head(grad, heads.query);
  const std::vector<Block> blocks = blocks_of(of.query.size(1), causal);
  at::Tensor grad_query = at::empty(of.query.sizes(), of.query.options());
  BlockSum grad_key(of.key, blocks.size()), grad_value(of.value, blocks.size());
  for (const Block& block : blocks) {
    const at::Tensor probabilities = probabilities_of(block, of, heads, causal);
    const at::Tensor from_output = grouped(block.queries(grad_output), heads);
    at::Tensor grad_scores = at::bmm(from_output, block.keys(of.value).transpose(1, 2)).view(probabilities.sizes());
    attention_softmax_backward_in_place(grad_scores, probabilities, scale_of(of), causal);
    const at::Tensor scores = grouped(grad_scores, heads);
    block.queries(grad_query)
        .copy_(at::bmm(scores, block.keys(of.key)).view({of.query.size(0), block.rows, of.query.size(2)}));
    grad_key.add(block, at::bmm(scores.transpose(1, 2), grouped(block.queries(of.query), heads)));
    grad_value.add(block, at::bmm(grouped(probabilities, heads).transpose(1, 2), from_output));
  }
  return {grad_query, grad_key.take(), grad_value.take()};
}

}  // namespace gyre
