#include "gyre/kernels/bf16/attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "gyre/kernels/attention_blocks.h"
#include "gyre/kernels/attention_softmax.h"
#include "gyre/kernels/bf16/product.h"
#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/parallel_for.h"
#include "gyre/kernels/rows.h"
#include "gyre/tensors/profile_scope.h"

namespace gyre::bf16 {
namespace {

using Bf16 = c10::BFloat16;
using cpu::SoftmaxRow;

bool serves(const at::Tensor& x) {
  return cpu::has_whole_rows(x) && x.scalar_type() == at::kBFloat16;
}
bool serves(const HeadTensors& inputs) {
  return serves(inputs.query) && serves(inputs.key) && serves(inputs.value) && inputs.query.numel() > 0 && cpu_serves();
}

// A group is the query heads that share one key-value head.
struct Shape {
  int64_t context, size, heads_per_group, groups, groups_per_sequence;
  explicit Shape(const HeadTensors& inputs)
      : context(inputs.query.size(2)),
        size(inputs.query.size(3)),
        heads_per_group(inputs.query.size(1) / inputs.key.size(1)),
        groups(inputs.key.size(0) * inputs.key.size(1)),
        groups_per_sequence(inputs.key.size(1)) {}
  int64_t head_elements() const { return context * size; }
  int64_t heads() const { return groups_per_sequence * heads_per_group; }
};

// One head of a tensor: `size` contiguous elements per position, `stride` elements from one position to the next.
struct Head {
  Bf16* data;
  int64_t stride;
  Head from(int64_t position) const { return {data + position * stride, stride}; }
};

// Head `index`, counted over the whole batch, of x: (batch, heads, context, size).
Head head_of(const at::Tensor& x, int64_t index) {
  const int64_t sequence = index / x.size(1), head = index % x.size(1);
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

// The rows of a head without gaps: in place if they are contiguous, else copied. Called just before products read them,
// so that the copy is in the cache.
class DenseRows {
 public:
  const Bf16* dense(const Head& head, int64_t rows, int64_t size) {
    if (head.stride == size) return head.data;
    if (copies_.size() < static_cast<size_t>(rows * size)) copies_.resize(static_cast<size_t>(rows * size));
    gather(head, rows, size, copies_.data());
    return copies_.data();
  }

 private:
  std::vector<Bf16> copies_;
};

// A matrix product of one head, under a name of its own in profiles.
void multiply(Kind kind, int64_t rows, int64_t in, int64_t out, const void* first, const void* second, void* result) {
  const ProfileScope scope("gyre::attention_product");
  run({kind, rows, in, out}, first, second, result);
}

// The backward of longer contexts is tiled. Up to this length, what a block of queries needs stays in the L2 cache: its
// scores for all keys, their gradients, and the fp32 gradients of keys and values.
constexpr int64_t kLongContext = 2048;
constexpr int64_t kTileKeys = 512;

bool is_tiled(const Shape& shape) {
  return shape.context > kLongContext;
}

// A thread's working memory: the scores of one block and so on.
struct Workspace {
  std::vector<Bf16> probabilities, grad_scores, results;
  std::vector<float> softmax, row_sums, grad_query, grad_key, grad_value;
  DenseRows queries, keys, values, grad;

  void for_forward(const Shape& shape) {
    probabilities.resize(static_cast<size_t>(kBlockQueries * shape.context));
    results.resize(static_cast<size_t>(kBlockQueries * shape.size));
    softmax.resize(static_cast<size_t>(cpu::whole_lanes(shape.context)));
  }
  void for_backward(const Shape& shape) {
    const auto head_elements = static_cast<size_t>(shape.head_elements());
    probabilities.resize(static_cast<size_t>(kBlockQueries * (is_tiled(shape) ? kTileKeys : shape.context)));
    grad_scores.resize(probabilities.size());
    grad_key.resize(head_elements);
    grad_value.resize(head_elements);
    if (is_tiled(shape)) {
      row_sums.resize(static_cast<size_t>(shape.context));
      grad_query.resize(head_elements);
    } else {
      results.resize(static_cast<size_t>(kBlockQueries * shape.size));
    }
  }
};

static_assert(sizeof(SoftmaxRow) == 2 * sizeof(float));
// The rows of head `index`. softmax_rows: (batch, heads, context, 2).
SoftmaxRow* softmax_of(const at::Tensor& softmax_rows, int64_t index) {
  return reinterpret_cast<SoftmaxRow*>(softmax_rows.data_ptr<float>()) + index * softmax_rows.size(2);
}

// The attention of one query head: its group's keys and values, each (context, size) without gaps.
struct Attending {
  const Shape& shape;
  const std::vector<AttentionBlock>& blocks;
  bool causal;
  const Bf16 *key, *value;
  double scale = attention_scale(shape.size);

  // Writes Q K^T of a block to work.probabilities, where the softmax then turns it into probabilities.
  void find_scores(const AttentionBlock& block, const Bf16* queries, Workspace& work) const {
    multiply(Kind::Forward, block.rows, shape.size, block.seen, queries, key, work.probabilities.data());
  }

  void forward(const Head& query, const Head& output, SoftmaxRow* softmax_rows, Workspace& work) const {
    for (const AttentionBlock& block : blocks) {
      find_scores(block, work.queries.dense(query.from(block.first), block.rows, shape.size), work);
      cpu::attention_softmax(work.probabilities.data(), work.softmax.data(), softmax_rows + block.first, block.rows,
                             block.seen, scale, causal);
      multiply(Kind::BackwardInput, block.rows, shape.size, block.seen, work.probabilities.data(), value,
               work.results.data());
      scatter(work.results.data(), block.rows, shape.size, output.from(block.first));
    }
  }

  // adds: work.grad_key and work.grad_value already hold sums to add to.
  void backward(const Head& query, const Head& grad_output, const SoftmaxRow* softmax_rows, const Head& grad_query,
                bool adds, Workspace& work) const {
    for (const AttentionBlock& block : blocks) {
      const Bf16* queries = work.queries.dense(query.from(block.first), block.rows, shape.size);
      const Bf16* grad = work.grad.dense(grad_output.from(block.first), block.rows, shape.size);
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
      adds = true;  // the last block comes first and sees all keys, so all sums are set now
    }
  }
};

// The backward of one query head in a long context: tiles of 128 queries and 512 keys, all queries of a tile's keys
// before the next keys. So the gradients of 512 keys and values stay in the L2 cache while all blocks of queries pass,
// and those of the queries pass once for every 512 keys. A row's sum(grad * P) is needed before its first tile, so it
// is computed from the output, which is rounded to bf16.
struct TiledBackward {
  const Attending& attending;
  const Shape& shape = attending.shape;

  void backward(const Head& query, const Head& grad_output, const Head& output, const SoftmaxRow* softmax_rows,
                const Head& grad_query, bool adds, Workspace& work) const {
    const Bf16* queries = work.queries.dense(query, shape.context, shape.size);
    const Bf16* grad = work.grad.dense(grad_output, shape.context, shape.size);
    cpu::attention_row_sums(grad, output.data, output.stride, shape.context, shape.size, work.row_sums.data());
    for (int64_t first_key = 0; first_key < shape.context; first_key += kTileKeys) {
      bool adds_to_keys = adds;
      for (const AttentionBlock& block : attending.blocks) {
        if (block.seen <= first_key) break;  // the blocks that follow see even fewer keys
        tile(block, first_key, queries, grad, softmax_rows, adds_to_keys, work);
        adds_to_keys = true;  // the last block comes first and sees all keys, so all sums of these keys are set now
      }
    }
    cpu::to_bf16(grad_query.data, grad_query.stride, work.grad_query.data(), shape.size, shape.context, shape.size);
  }

  // all_queries, all_grad: (context, size), without gaps.
  void tile(const AttentionBlock& block, int64_t first_key, const Bf16* all_queries, const Bf16* all_grad,
            const SoftmaxRow* softmax_rows, bool adds_to_keys, Workspace& work) const {
    const int64_t size = shape.size, rows = block.rows, seen = block.seen - first_key, keys = std::min(kTileKeys, seen);
    const bool on_diagonal = attending.causal && seen <= kTileKeys;
    const Bf16 *queries = all_queries + block.first * size, *grad = all_grad + block.first * size;
    const Bf16 *key = attending.key + first_key * size, *value = attending.value + first_key * size;
    Bf16 *scores = work.probabilities.data(), *grad_scores = work.grad_scores.data();
    multiply(Kind::Forward, rows, size, keys, queries, key, scores);
    multiply(Kind::Forward, rows, size, keys, grad, value, grad_scores);
    cpu::attention_softmax_backward_of_tile(grad_scores, scores, softmax_rows + block.first,
                                            work.row_sums.data() + block.first, rows, keys, attending.scale,
                                            on_diagonal);
    const Kind outer = adds_to_keys ? Kind::AddedOuter : Kind::Outer;
    multiply(outer, rows, size, keys, grad_scores, queries, work.grad_key.data() + first_key * size);
    multiply(outer, rows, size, keys, scores, grad, work.grad_value.data() + first_key * size);
    multiply(first_key > 0 ? Kind::AddedInput : Kind::WideInput, rows, size, keys, grad_scores, key,
             work.grad_query.data() + block.first * size);
  }
};

// Calls work(group, attending, workspace) for every group, on all threads. The workspace is the thread's own.
template <typename Work>
void for_groups(const HeadTensors& inputs, const Shape& shape, bool causal, const Work& work) {
  const std::vector<AttentionBlock> blocks = attention_blocks(shape.context, causal);
  const auto work_on = [&](int64_t begin, int64_t end) {
    Workspace workspace;
    for (int64_t group = begin; group < end; ++group) {
      const Bf16* keys = workspace.keys.dense(head_of(inputs.key, group), shape.context, shape.size);
      const Bf16* values = workspace.values.dense(head_of(inputs.value, group), shape.context, shape.size);
      work(group, Attending{shape, blocks, causal, keys, values}, workspace);
    }
  };
  // Fewer groups than threads go one after the other, and each product uses all threads.
  if (shape.groups < at::get_num_threads()) return work_on(0, shape.groups);
  cpu::parallel_for(shape.groups, work_on);
}

}  // namespace

bool attention(const HeadTensors& inputs, bool causal, Attended& result) {
  if (!serves(inputs)) return false;
  const Shape shape(inputs);
  const int64_t batch = inputs.query.size(0);
  result.output = at::empty({batch, shape.context, shape.heads() * shape.size}, inputs.query.options());
  result.softmax_rows = at::empty({batch, shape.heads(), shape.context, 2}, inputs.query.options().dtype(at::kFloat));
  const at::Tensor output = heads_of(result.output, shape.heads());
  for_groups(inputs, shape, causal, [&](int64_t group, const Attending& attending, Workspace& work) {
    work.for_forward(shape);
    for (int64_t head = group * shape.heads_per_group; head < (group + 1) * shape.heads_per_group; ++head) {
      attending.forward(head_of(inputs.query, head), head_of(output, head), softmax_of(result.softmax_rows, head),
                        work);
    }
  });
  return true;
}

bool attention_of_one(const HeadTensors& inputs, int64_t seen, at::Tensor& result) {
  if (!serves(inputs)) return false;
  const Shape shape(inputs);
  // Whole blocks of keys, so that a text that grows by a token does not need a product of another shape, which oneDNN
  // has to make first. The probabilities and values of the unused positions are zero.
  const int64_t keys = std::min((seen + kBlockQueries - 1) / kBlockQueries * kBlockQueries, inputs.key.size(2));
  const int64_t rows = shape.heads_per_group;
  result = at::empty({inputs.query.size(0), 1, shape.heads() * shape.size}, inputs.query.options());
  auto* const results = result.data_ptr<Bf16>();
  cpu::parallel_for(shape.groups, [&](int64_t begin, int64_t end) {
    std::vector<Bf16> scores(static_cast<size_t>(rows * keys));
    std::vector<float> scratch(static_cast<size_t>(cpu::whole_lanes(seen)));
    SoftmaxRow softmax;
    DenseRows queries, key_rows, value_rows;
    for (int64_t group = begin; group < end; ++group) {
      const Head key = head_of(inputs.key, group), value = head_of(inputs.value, group);
      for (int64_t unused = seen; unused < keys; ++unused) std::fill_n(value.from(unused).data, shape.size, Bf16{});
      // The queries that share keys and values are the rows of one product.
      const Head query{head_of(inputs.query, group * rows).data, inputs.query.stride(1)};
      multiply(Kind::Forward, rows, shape.size, keys, queries.dense(query, rows, shape.size),
               key_rows.dense(key, keys, shape.size), scores.data());
      for (Bf16* row = scores.data(); row != scores.data() + rows * keys; row += keys) {
        cpu::attention_softmax(row, scratch.data(), &softmax, 1, seen, attention_scale(shape.size), /*causal=*/false);
        std::fill(row + seen, row + keys, Bf16{});
      }
      multiply(Kind::BackwardInput, rows, shape.size, keys, scores.data(), value_rows.dense(value, keys, shape.size),
               results + group * rows * shape.size);
    }
  });
  return true;
}

bool attention_backward(const at::Tensor& grad, const HeadTensors& inputs, const Attended& attended, bool causal,
                        at::Tensor& result) {
  if (!attended.softmax_rows.defined() || !serves(inputs) || !cpu::is_plain(grad, at::kBFloat16)) return false;
  const Shape shape(inputs);
  const AttentionHeads heads{shape.heads(), shape.groups_per_sequence};
  result = at::empty({grad.size(0), shape.context, (heads.query + 2 * heads.key_value) * shape.size}, grad.options());
  const HeadTensors to = split_heads(result, heads);
  const at::Tensor grad_output = heads_of(grad, shape.heads()), output = heads_of(attended.output, shape.heads());
  for_groups(inputs, shape, causal, [&](int64_t group, const Attending& attending, Workspace& work) {
    work.for_backward(shape);
    const int64_t first = group * shape.heads_per_group;
    for (int64_t head = first; head < first + shape.heads_per_group; ++head) {
      const Head query = head_of(inputs.query, head), from = head_of(grad_output, head), into = head_of(to.query, head);
      const SoftmaxRow* softmax_rows = softmax_of(attended.softmax_rows, head);
      const bool adds = head > first;
      if (is_tiled(shape)) {
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
