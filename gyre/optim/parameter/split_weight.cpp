#include "gyre/optim/parameter/split_weight.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <limits>

#include "gyre/kernels/parallel_for.h"
#include "gyre/optim/parameter/split_loops.h"

namespace gyre {
namespace {

constexpr int64_t kHigh = int64_t{1} << 16;

GYRE_CPU_KERNEL void join_loop(SplitElements from, float* __restrict to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = from.load(i);
}

GYRE_CPU_KERNEL void split_loop(const float* __restrict from, SplitElements to, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) to.store(i, from[i]);
}

}  // namespace

// The bits of the sum fit: they are those of a float.
at::Tensor portable::joined(const SplitWeight& weight) {
  const at::Tensor high = weight.version.contiguous().view(at::kShort).to(at::kInt).mul_(kHigh);
  return high.add_(weight.rest).view(at::kFloat);
}

void portable::split(const at::Tensor& value, const SplitWeight& weight) {
  const at::Tensor whole = value.contiguous(), version = whole.to(at::kBFloat16);
  const at::Tensor high = version.view(at::kShort).to(at::kLong).mul_(kHigh);
  weight.rest.copy_((whole.view(at::kInt).to(at::kLong) - high).clamp_max_(std::numeric_limits<int16_t>::max()));
  weight.next.copy_(version);
}

at::Tensor joined(const SplitWeight& weight) {
  if (!is_plain(weight)) return portable::joined(weight);
  at::Tensor whole = at::empty(weight.version.sizes(), weight.version.options().dtype(at::kFloat));
  const SplitElements from(weight);
  float* const to = whole.data_ptr<float>();
  cpu::for_elements(whole.numel(),
                    [&](int64_t begin, int64_t end) { join_loop(from.from(begin), to + begin, end - begin); });
  return whole;
}

void split(const at::Tensor& value, const SplitWeight& weight) {
  if (!is_plain(weight) || !cpu::is_plain(value, at::kFloat)) return portable::split(value, weight);
  const float* from = value.data_ptr<float>();
  const SplitElements to(weight);
  cpu::for_elements(value.numel(),
                    [&](int64_t begin, int64_t end) { split_loop(from + begin, to.from(begin), end - begin); });
}

SplitWeight block_of(const MatrixBlock& block, const SplitWeight& weight) {
  return {block.of(weight.version), block.of(weight.rest), block.of(weight.next)};
}

}  // namespace gyre
