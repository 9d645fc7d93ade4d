#include "gyre/kernels/bf16/attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
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
using cpu::SoftmaxRow;

bool serves(const at::Tensor& x) {
  return cpu::has_whole_rows(x) && x.scalar_type() == at::kBFloat16;
}
bool serves(const HeadTensors& of) {
  return serves(of.query) && serves(of.key) && serves(of.value) && of.query.numel() > 0 && cpu_serves();
}

// A group is the heads of queries that share one of keys and values.
struct Shape {
  int64_t context, size, in_group, groups, groups_of_sequence;
  explicit Shape(const HeadTensors& of)
      : context(of.query.size(2)),
        size(of.query.size(3)),
        in_group(of.query.size(1) / of.key.size(1)),
        groups(of.key.size(0) * of.key.size(1)),
        groups_of_sequence(of.key.size(1)) {}
  int64_t head_elements() const { return context * size; }
  int64_t heads() const { return groups_of_sequence * in_group; }
};

// One head: `size` elements at each position, `stride` from those of the one before.
struct Head {
  Bf16* data;
  int64_t stride;
  Head from(int64_t position) const { return {data + position * stride, stride}; }
};

// The number-th head of (batch, heads, context, size).
Head head_of(const at::Tensor& x, int64_t number) {
  const int64_t sequence = number / x.size(1), head = number % x.size(1);
  return {x.data_ptr<Bf16>() + sequence * x.stride(0) + head * x.stride(1), x.stride(2)};
}

void gather(const Head& from, int64_t rows, int64_t size, Bf16* to) {
  const auto element = static_cast<int64_t>(sizeof(Bf16));
  cpu::copy_rows(to, size * element, from.data, from.stride * element, rows, size * element);
}
void scatter(const Bf16* from, int64_t rows, int64_t size, const Head& to) {
  const auto element = static_cast<int64_t>(sizeof(Bf16));
  cpu::copy_rows(to.data, to.stride * element, from, size * element, rows, size * element);
}

// Rows of a head without gaps: where they lie, or copied, shortly before products read them.
class DenseRows {
 public:
  const Bf16* of(const Head& head, int64_t rows, int64_t size) {
    if (head.stride == size) return head.data;
    if (copies_.size() < static_cast<size_t>(rows * size)) copies_.resize(static_cast<size_t>(rows * size));
    gather(head, rows, size, copies_.data());
    return copies_.data();
  }

 private:
  std::vector<Bf16> copies_;
};

// A product of one head; a thread has enough others to do.
void multiply(Kind kind, int64_t rows, int64_t in, int64_t out, const void* first, const void* second, void* result) {
  const ProfileScope scope("gyre::attention_product");
  run({kind, rows, in, out}, first, second, result);
}

// Contexts longer than this have a backward that goes by tiles. In shorter ones a block's scores for all of its keys,
// their gradients and the sums for keys and values stay in the core's second cache.
constexpr int64_t kLongContext = 2048;
// Keys of a tile, whose other side is a block of queries.
constexpr int64_t kTileKeys = 512;

bool has_tiles(const Shape& shape) {
  return shape.context > kLongContext;
}

// What a thread works in: a block's scores and the like.
struct Workspace {
  std::vector<Bf16> probabilities, grad_scores, results;
  std::vector<float> softmax, row_sums, grad_query, grad_key, grad_value;
  DenseRows queries, keys, values, grad;

  void for_forward(const Shape& shape) {
    probabilities.resize(static_cast<size_t>(kQueries * shape.context));
    results.resize(static_cast<size_t>(kQueries * shape.size));
    softmax.resize(static_cast<size_t>(cpu::whole_lanes(shape.context)));
  }
  void for_backward(const Shape& shape) {
    const auto of_head = static_cast<size_t>(shape.head_elements());
    probabilities.resize(static_cast<size_t>(kQueries * (has_tiles(shape) ? kTileKeys : shape.context)));
    grad_scores.resize(probabilities.size());
    grad_key.resize(of_head);
    grad_value.resize(of_head);
    if (has_tiles(shape)) {
      row_sums.resize(static_cast<size_t>(shape.context));
      grad_query.resize(of_head);
    } else {
      results.resize(static_cast<size_t>(kQueries * shape.size));
    }
  }
};

static_assert(sizeof(SoftmaxRow) == 2 * sizeof(float));
// Those of the number-th head, of (batch, heads, context, 2).
SoftmaxRow* rows_of(const at::Tensor& softmax_rows, int64_t number) {
  return reinterpret_cast<SoftmaxRow*>(softmax_rows.data_ptr<float>()) + number * softmax_rows.size(2);
}

// What one head of queries attends with: its group's keys and values, without gaps.
struct Attending {
  const Shape& shape;
  const std::vector<AttentionBlock>& blocks;
  bool causal;
  const Bf16 *key, *value;
  double scale = attention_scale(shape.size);

  // Q K^T of a block into the workspace, where a softmax makes probabilities of it.
  void find_scores(const AttentionBlock& block, const Bf16* queries, Workspace& work) const {
    multiply(Kind::Forward, block.rows, shape.size, block.seen, queries, key, work.probabilities.data());
  }

  void forward(const Head& query, const Head& output, SoftmaxRow* softmax_rows, Workspace& work) const {
    for (const AttentionBlock& block : blocks) {
      find_scores(block, work.queries.of(query.from(block.first), block.rows, shape.size), work);
      cpu::attention_softmax(work.probabilities.data(), work.softmax.data(), softmax_rows + block.first, block.rows,
                             block.seen, scale, causal);
      multiply(Kind::BackwardInput, block.rows, shape.size, block.seen, work.probabilities.data(), value,
               work.results.data());
      scatter(work.results.data(), block.rows, shape.size, output.from(block.first));
    }
  }

  // `adds`: the sums for keys and values hold something already.
  void backward(const Head& query, const Head& grad_output, const SoftmaxRow* softmax_rows, const Head& grad_query,
                bool adds, Workspace& work) const {
    for (const AttentionBlock& block : blocks) {
      const Bf16* queries = work.queries.of(query.from(block.first), block.rows, shape.size);
      const Bf16* grad = work.grad.of(grad_output.from(block.first), block.rows, shape.size);
      find_scores(block, queries, work);
      multiply(Kind::Forward, block.rows, shape.size, block.seen, grad, value, work.grad_scores.data());
      cpu::attention_softmax_backward(work.grad_scores.data(), work.probabilities.data(), softmax_rows + block.first,
                                      block.rows, block.seen, scale, causal);
      multiply(Kind::BackwardInput, block.rows, shape.size, block.seen, work.grad_scores.data(), key,
               work.results.data());
      scatter(work.results.data(), block.rows, shape.size, grad_query.from(block.first));
      const Kind outer = adds ? Kind::AddedOuter : Kind::Outer;
      multiply(outer, block.rows, shape.size, block.seen, work.grad_scores.data(), queries, work.grad_key.data());
      multiply(outer, block.rows, shape.size, block.seen, work.probabilities.data(), grad, work.grad_value.data());
      adds = true;  // the last block, which comes first, has seen all keys
    }
  }
};

// The same by tiles of keys and blocks of queries, for long contexts. The sums for a tile's keys and values stay in the
// cache while all blocks of queries that see it pass by; those for queries come by once for each tile. Every row's sum
// of gradients is then needed before its first tile, so it is made of the output, which is rounded to bf16.
struct TiledBackward {
  const Attending& attending;
  const Shape& shape = attending.shape;

  void backward(const Head& query, const Head& grad_output, const Head& output, const SoftmaxRow* softmax_rows,
                const Head& grad_query, bool adds, Workspace& work) const {
    const Bf16* queries = work.queries.of(query, shape.context, shape.size);
    const Bf16* grad = work.grad.of(grad_output, shape.context, shape.size);
    cpu::attention_row_sums(grad, output.data, output.stride, shape.context, shape.size, work.row_sums.data());
    for (int64_t first_key = 0; first_key < shape.context; first_key += kTileKeys) {
      bool adds_to_keys = adds;
      for (const AttentionBlock& block : attending.blocks) {
        if (block.seen <= first_key) break;  // so do those that follow
        tile(block, first_key, queries, grad, softmax_rows, adds_to_keys, work);
        adds_to_keys = true;  // the last block, which comes first, has seen all keys
      }
    }
    cpu::to_bf16(grad_query.data, grad_query.stride, work.grad_query.data(), shape.size, shape.context, shape.size);
  }

  void tile(const AttentionBlock& block, int64_t first_key, const Bf16* all_queries, const Bf16* all_grad,
            const SoftmaxRow* softmax_rows, bool adds_to_keys, Workspace& work) const {
    const int64_t size = shape.size, rows = block.rows, seen = block.seen - first_key, keys = std::min(kTileKeys, seen);
    const bool on_edge = attending.causal && seen <= kTileKeys;
    const Bf16 *queries = all_queries + block.first * size, *grad = all_grad + block.first * size;
    const Bf16 *key = attending.key + first_key * size, *value = attending.value + first_key * size;
    Bf16 *scores = work.probabilities.data(), *grad_scores = work.grad_scores.data();
    multiply(Kind::Forward, rows, size, keys, queries, key, scores);
    multiply(Kind::Forward, rows, size, keys, grad, value, grad_scores);
    cpu::attention_softmax_backward_of_part(grad_scores, scores, softmax_rows + block.first,
                                            work.row_sums.data() + block.first, rows, keys, attending.scale, on_edge);
    const Kind outer = adds_to_keys ? Kind::AddedOuter : Kind::Outer;
    multiply(outer, rows, size, keys, grad_scores, queries, work.grad_key.data() + first_key * size);
    multiply(outer, rows, size, keys, scores, grad, work.grad_value.data() + first_key * size);
    multiply(first_key > 0 ? Kind::AddedInput : Kind::WideInput, rows, size, keys, grad_scores, key,
             work.grad_query.data() + block.first * size);
  }
};

// work(group, what its heads attend with, a thread's workspace) for every group.
template <typename Work>
void for_groups(const HeadTensors& of, const Shape& shape, bool causal, const Work& work) {
  const std::vector<AttentionBlock> blocks = attention_blocks(shape.context, causal);
  at::parallel_for(0, shape.groups, 1, [&](int64_t begin, int64_t end) {
    Workspace workspace;
    for (int64_t group = begin; group < end; ++group) {
      const Bf16* keys = workspace.keys.of(head_of(of.key, group), shape.context, shape.size);
      const Bf16* values = workspace.values.of(head_of(of.value, group), shape.context, shape.size);
      work(group, Attending{shape, blocks, causal, keys, values}, workspace);
    }
  });
}

}  // namespace

bool attention(const HeadTensors& of, bool causal, Attended& result) {
  if (!serves(of)) return false;
  const Shape shape(of);
  const int64_t batch = of.query.size(0);
  result.output = at::empty({batch, shape.context, shape.heads() * shape.size}, of.query.options());
  result.softmax_rows = at::empty({batch, shape.heads(), shape.context, 2}, of.query.options().dtype(at::kFloat));
  const at::Tensor output = heads_of(result.output, shape.heads());
  for_groups(of, shape, causal, [&](int64_t group, const Attending& attending, Workspace& work) {
    work.for_forward(shape);
    for (int64_t head = group * shape.in_group; head < (group + 1) * shape.in_group; ++head) {
      attending.forward(head_of(of.query, head), head_of(output, head), rows_of(result.softmax_rows, head), work);
    }
  });
  return true;
}

bool attention_backward(const at::Tensor& grad, const HeadTensors& of, const Attended& attended, bool causal,
                        at::Tensor& result) {
  if (!attended.softmax_rows.defined() || !serves(of) || !cpu::is_plain(grad, at::kBFloat16)) return false;
  const Shape shape(of);
  const AttentionHeads heads{shape.heads(), shape.groups_of_sequence};
  result = at::empty({grad.size(0), shape.context, (heads.query + 2 * heads.key_value) * shape.size}, grad.options());
  const HeadTensors to = split_heads(result, heads);
  const at::Tensor grad_output = heads_of(grad, shape.heads()), output = heads_of(attended.output, shape.heads());
  for_groups(of, shape, causal, [&](int64_t group, const Attending& attending, Workspace& work) {
    work.for_backward(shape);
    const int64_t first = group * shape.in_group;
    for (int64_t head = first; head < first + shape.in_group; ++head) {
      const Head query = head_of(of.query, head), from = head_of(grad_output, head), into = head_of(to.query, head);
      const SoftmaxRow* softmax_rows = rows_of(attended.softmax_rows, head);
      const bool adds = head > first;
      if (has_tiles(shape)) {
        TiledBackward{attending}.backward(query, from, head_of(output, head), softmax_rows, into, adds, work);
      } else {
        attending.backward(query, from, softmax_rows, into, adds, work);
      }
    }
    const auto store = [&](const std::vector<float>& sums, const Head& head) {
      cpu::to_bf16(head.data, head.stride, sums.data(), shape.size, shape.context, shape.size);
    };
    store(work.grad_key, head_of(to.key, group));
    store(work.grad_value, head_of(to.value, group));
  });
  return true;
}

}  // namespace gyre::bf16
