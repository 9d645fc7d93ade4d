#include "gyre/kernels/bf16/attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <vector>

#include "gyre/kernels/attention_blocks.h"
#include "gyre/kernels/attention_softmax.h"
#include "gyre/kernels/bf16/product.h"
#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/rows.h"
#include "gyre/tensors/profile_scope.h"

namespace gyre::bf16 {
namespace {

using Bf16 = c10::BFloat16;

bool serves(const HeadTensors& of) {
  return cpu::is_plain(of.query, at::kBFloat16) && cpu::is_plain(of.key, at::kBFloat16) &&
         cpu::is_plain(of.value, at::kBFloat16) && of.query.numel() > 0 && cpu_serves();
}

// A group is the heads of queries that share one of keys and values.
struct Shape {
  int64_t context, size, in_group, groups, groups_of_sequence, heads;
  Shape(const HeadTensors& of, const AttentionHeads& of_heads)
      : context(of.query.size(1)),
        size(of.query.size(2)),
        in_group(of_heads.query / of_heads.key_value),
        groups(of.key.size(0)),
        groups_of_sequence(of_heads.key_value),
        heads(of_heads.query) {}
  int64_t head_elements() const { return context * size; }
  // Where row `row` of a group's `query`-th head is in (batch, context, heads, size).
  int64_t by_position(int64_t group, int64_t query, int64_t row) const {
    const int64_t sequence = group / groups_of_sequence, head = group % groups_of_sequence * in_group + query;
    return ((sequence * context + row) * heads + head) * size;
  }
};

// A product of one head; a thread has enough others to do.
void multiply(Kind kind, int64_t rows, int64_t in, int64_t out, const void* first, const void* second, void* result) {
  const ProfileScope scope("gyre::attention_product");
  run({kind, rows, in, out}, first, second, result);
}

// What a thread works in: a block's scores and the like.
struct Workspace {
  std::vector<Bf16> probabilities, grad_scores, rows;
  std::vector<float> softmax, grad_key, grad_value;

  explicit Workspace(const Shape& shape)
      : probabilities(static_cast<size_t>(kQueries * shape.context)),
        rows(static_cast<size_t>(kQueries * shape.size)),
        softmax(static_cast<size_t>(cpu::whole_lanes(shape.context))) {}
  void for_backward(const Shape& shape) {
    grad_scores.resize(probabilities.size());
    grad_key.resize(static_cast<size_t>(shape.head_elements()));
    grad_value.resize(grad_key.size());
  }
};

// softmax(scale * Q K^T) of a block into the workspace.
void find_probabilities(const AttentionBlock& block, const Shape& shape, const Bf16* queries, const Bf16* keys,
                        bool causal, Workspace& work) {
  multiply(Kind::Forward, block.rows, shape.size, block.seen, queries, keys, work.probabilities.data());
  cpu::attention_softmax(work.probabilities.data(), work.softmax.data(), block.rows, block.seen,
                         attention_scale(shape.size), causal);
}

// Rows of one head, between its own place and that among all heads.
void gather_rows(const Bf16* from, int64_t rows, const Shape& shape, Bf16* to) {
  const auto bytes = static_cast<int64_t>(sizeof(Bf16)) * shape.size;
  cpu::copy_rows(to, bytes, from, shape.heads * bytes, rows, bytes);
}
void scatter_rows(const Bf16* from, int64_t rows, const Shape& shape, Bf16* to) {
  const auto bytes = static_cast<int64_t>(sizeof(Bf16)) * shape.size;
  cpu::copy_rows(to, shape.heads * bytes, from, bytes, rows, bytes);
}

// The gradients of one head of queries. `adds`: the sums for keys and values hold something already.
struct HeadBackward {
  const Shape& shape;
  const std::vector<AttentionBlock>& blocks;
  bool causal;
  const Bf16 *query, *key, *value;

  void run(const Bf16* grad, Bf16* grad_query, bool adds, Workspace& work) const {
    for (const AttentionBlock& block : blocks) {
      const Bf16* queries = query + block.first * shape.size;
      find_probabilities(block, shape, queries, key, causal, work);
      gather_rows(grad + block.first * shape.heads * shape.size, block.rows, shape, work.rows.data());
      multiply(Kind::Forward, block.rows, shape.size, block.seen, work.rows.data(), value, work.grad_scores.data());
      cpu::attention_softmax_backward(work.grad_scores.data(), work.probabilities.data(), block.rows, block.seen,
                                      attention_scale(shape.size), causal);
      multiply(Kind::BackwardInput, block.rows, shape.size, block.seen, work.grad_scores.data(), key,
               grad_query + block.first * shape.size);
      const Kind outer = adds ? Kind::AddedOuter : Kind::Outer;
      multiply(outer, block.rows, shape.size, block.seen, work.grad_scores.data(), queries, work.grad_key.data());
      multiply(outer, block.rows, shape.size, block.seen, work.probabilities.data(), work.rows.data(),
               work.grad_value.data());
      adds = true;  // the last block, which comes first, has seen all keys
    }
  }
};

}  // namespace

bool attention(const HeadTensors& of, const AttentionHeads& heads, bool causal, at::Tensor& result) {
  if (!serves(of)) return false;
  const Shape shape(of, heads);
  const std::vector<AttentionBlock> blocks = attention_blocks(shape.context, causal);
  result =
      at::empty({shape.groups / shape.groups_of_sequence, shape.context, shape.heads * shape.size}, of.query.options());
  const auto *query = of.query.data_ptr<Bf16>(), *key = of.key.data_ptr<Bf16>(), *value = of.value.data_ptr<Bf16>();
  auto* to = result.data_ptr<Bf16>();
  at::parallel_for(0, shape.groups, 1, [&](int64_t begin, int64_t end) {
    Workspace work(shape);
    for (int64_t group = begin; group < end; ++group) {
      const int64_t keys = group * shape.head_elements();
      for (int64_t q = 0; q < shape.in_group; ++q) {
        const Bf16* queries = query + (group * shape.in_group + q) * shape.head_elements();
        for (const AttentionBlock& block : blocks) {
          find_probabilities(block, shape, queries + block.first * shape.size, key + keys, causal, work);
          multiply(Kind::BackwardInput, block.rows, shape.size, block.seen, work.probabilities.data(), value + keys,
                   work.rows.data());
          scatter_rows(work.rows.data(), block.rows, shape, to + shape.by_position(group, q, block.first));
        }
      }
    }
  });
  return true;
}

bool attention_backward(const at::Tensor& grad, const HeadTensors& of, const AttentionHeads& heads, bool causal,
                        HeadTensors& result) {
  if (!serves(of) || !cpu::is_plain(grad, at::kBFloat16)) return false;
  const Shape shape(of, heads);
  const std::vector<AttentionBlock> blocks = attention_blocks(shape.context, causal);
  const auto like = [](const at::Tensor& x) { return at::empty(x.sizes(), x.options()); };
  result = {like(of.query), like(of.key), like(of.value)};
  const auto *query = of.query.data_ptr<Bf16>(), *key = of.key.data_ptr<Bf16>(), *value = of.value.data_ptr<Bf16>();
  const auto* from = grad.data_ptr<Bf16>();
  auto *grad_query = result.query.data_ptr<Bf16>(), *grad_key = result.key.data_ptr<Bf16>(),
       *grad_value = result.value.data_ptr<Bf16>();
  at::parallel_for(0, shape.groups, 1, [&](int64_t begin, int64_t end) {
    Workspace work(shape);
    work.for_backward(shape);
    for (int64_t group = begin; group < end; ++group) {
      const int64_t keys = group * shape.head_elements();
      for (int64_t q = 0; q < shape.in_group; ++q) {
        const int64_t queries = (group * shape.in_group + q) * shape.head_elements();
        const HeadBackward head{shape, blocks, causal, query + queries, key + keys, value + keys};
        head.run(from + shape.by_position(group, q, 0), grad_query + queries, /*adds=*/q > 0, work);
      }
      cpu::to_bf16(work.grad_key.data(), grad_key + keys, shape.head_elements());
      cpu::to_bf16(work.grad_value.data(), grad_value + keys, shape.head_elements());
    }
  });
  return true;
}

}  // namespace gyre::bf16
