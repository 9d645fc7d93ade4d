#include "gyre/kernels/attention.h"

#include <ATen/ATen.h>

#include <vector>

#include "gyre/kernels/attention_blocks.h"
#include "gyre/kernels/attention_softmax.h"
#include "gyre/kernels/bf16/attention.h"
#include "gyre/kernels/bf16/product.h"
#include "gyre/kernels/portable.h"
#include "gyre/kernels/rows.h"
#include "gyre/tensors/profile_scope.h"

namespace gyre {
namespace {

// (batch, heads, context, size), perhaps a view -> (batch * heads, context, size)
at::Tensor by_head(const at::Tensor& x) {
  const at::Tensor together = x.is_contiguous() ? x : at::empty(x.sizes(), x.options());
  if (!x.is_contiguous()) copy_head_rows(together, x);
  return together.view({x.size(0) * x.size(1), x.size(2), x.size(3)});
}
HeadTensors by_head(const HeadTensors& of) {
  return {by_head(of.query), by_head(of.key), by_head(of.value)};
}

// The rows of all heads that share a key and value stand below each other, so that one product serves them:
// (batch * query heads, context, n) -> (batch * key-value heads, query / key_value * context, n).
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

double scale_of(const HeadTensors& of) {
  return attention_scale(of.query.size(-1));
}

// (batch * query heads, rows, seen)
at::Tensor probabilities_of(const Block& block, const HeadTensors& of, bool causal) {
  at::Tensor scores = at::bmm(grouped(queries(of.query, block), of.key.size(0)), keys(of.key, block).transpose(1, 2))
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

at::Tensor heads_of(const at::Tensor& x, int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

HeadTensors split_heads(const at::Tensor& qkv, const AttentionHeads& heads) {
  const at::Tensor all = heads_of(qkv, heads.query + 2 * heads.key_value);
  return {all.narrow(1, 0, heads.query), all.narrow(1, heads.query, heads.key_value),
          all.narrow(1, heads.query + heads.key_value, heads.key_value)};
}

Attended attention(const HeadTensors& of, bool causal) {
  const ProfileScope scope("gyre::attention");
  Attended result;
  if (bf16::attention(of, causal, result)) return result;
  result.output = portable::attention(of, causal);
  // Tensors without contents stand for those of the CPU.
  const AttentionHeads heads{of.query.size(1), of.key.size(1)};
  if (of.query.is_meta() && softmax_bytes(heads, static_cast<double>(of.query.element_size())) > 0) {
    result.softmax_rows =
        at::empty({of.query.size(0), heads.query, of.query.size(2), 2}, of.query.options().dtype(at::kFloat));
  }
  return result;
}

at::Tensor attention_backward(const at::Tensor& grad, const HeadTensors& of, const Attended& attended, bool causal) {
  const ProfileScope scope("gyre::attention");
  at::Tensor result;
  const bool done = bf16::attention_backward(grad, of, attended, causal, result);
  return done ? result : portable::attention_backward(grad, of, causal);
}

double softmax_bytes(const AttentionHeads& heads, double element_bytes) {
  const bool kept = bf16::cpu_serves() && element_bytes == sizeof(c10::BFloat16);
  return kept ? static_cast<double>(heads.query) * 2 * sizeof(float) : 0;
}

at::Tensor portable::attention(const HeadTensors& of, bool causal) {
  const int64_t batch = of.query.size(0), heads = of.query.size(1), context = of.query.size(2), size = of.query.size(3);
  const HeadTensors each = by_head(of);
  at::Tensor result = at::empty({batch, context, heads * size}, of.query.options());
  for (const Block& block : attention_blocks(context, causal)) {
    const at::Tensor probabilities = grouped(probabilities_of(block, each, causal), each.key.size(0));
    const at::Tensor output = at::bmm(probabilities, keys(each.value, block)).view({batch, heads, block.rows, size});
    copy_head_rows(queries(result.view({batch, context, heads, size}), block), output.transpose(1, 2));
  }
  return result;
}

at::Tensor portable::attention_backward(const at::Tensor& grad, const HeadTensors& of, bool causal) {
  const AttentionHeads heads{of.query.size(1), of.key.size(1)};
  const int64_t batch = of.query.size(0), context = of.query.size(2), size = of.query.size(3);
  const HeadTensors each = by_head(of);
  const at::Tensor grad_output = by_head(heads_of(grad, heads.query));
  const at::Tensor result = at::empty({batch, context, (heads.query + 2 * heads.key_value) * size}, grad.options());
  const HeadTensors to = split_heads(result, heads);
  const std::vector<Block> blocks = attention_blocks(context, causal);
  BlockSum grad_key(each.key, blocks.size()), grad_value(each.value, blocks.size());
  for (const Block& block : blocks) {
    const at::Tensor probabilities = probabilities_of(block, each, causal);
    const at::Tensor from_output = grouped(queries(grad_output, block), each.key.size(0));
    at::Tensor grad_scores = at::bmm(from_output, keys(each.value, block).transpose(1, 2)).view(probabilities.sizes());
    gyre::attention_softmax_backward_in_place(grad_scores, probabilities, scale_of(of), causal);
    const at::Tensor scores = grouped(grad_scores, each.key.size(0));
    const at::Tensor by_scores = at::bmm(scores, keys(each.key, block)).view({batch, heads.query, block.rows, size});
    copy_head_rows(to.query.narrow(2, block.first, block.rows), by_scores);
    grad_key.add(at::bmm(scores.transpose(1, 2), grouped(queries(each.query, block), each.key.size(0))));
    grad_value.add(at::bmm(grouped(probabilities, each.key.size(0)).transpose(1, 2), from_output));
  }
  copy_head_rows(to.key, grad_key.take().view(to.key.sizes()));
  copy_head_rows(to.value, grad_value.take().view(to.value.sizes()));
  return result;
}

}  // namespace gyre
