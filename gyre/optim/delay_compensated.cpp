#include "gyre/optim/delay_compensated.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "gyre/kernels/parallel_for.h"
#include "gyre/optim/parameter/split_loops.h"

namespace gyre {
namespace {

// g <- g + lambda g g (w - past); kept <- w.
template <typename Elements>
GYRE_INLINE void compensate_elements(float* __restrict g, Elements w, const float* __restrict past,
                                     float* __restrict kept, int64_t count, float lambda) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const float weight = w.load(i), square = g[i] * g[i];
    g[i] += lambda * square * (weight - past[i]);
    kept[i] = weight;
  }
}
GYRE_CPU_KERNEL void compensate_loop(float* g, WholeElements w, const float* past, float* kept, int64_t count,
                                     float lambda) {
  compensate_elements(g, w, past, kept, count, lambda);
}
GYRE_CPU_KERNEL void compensate_loop(float* g, SplitElements w, const float* past, float* kept, int64_t count,
                                     float lambda) {
  compensate_elements(g, w, past, kept, count, lambda);
}

at::Tensor whole(const at::Tensor& weight) {
  return weight;
}
at::Tensor whole(const SplitWeight& weight) {
  return joined(weight);
}

}  // namespace

void DelayCompensated::step(const Config& config, const at::Tensor& weight, const at::Tensor& gradient,
                            const UpdateContext& context) {
  step_any(config, weight, gradient, context);
}

void DelayCompensated::step(const Config& config, const SplitWeight& weight, const at::Tensor& gradient,
                            const UpdateContext& context) {
  step_any(config, weight, gradient, context);
}

template <typename Weight>
void DelayCompensated::step_any(const Config& config, const Weight& weight, const at::Tensor& gradient,
                                const UpdateContext& context) {
  compensate(config, weight, gradient, context);
  moments_.step(config, weight, gradient, context);
}

template <typename Weight>
void DelayCompensated::compensate(const Config& config, const Weight& weight, const at::Tensor& gradient,
                                  const UpdateContext& context) {
  const auto delay = std::min<size_t>(static_cast<size_t>(context.delay), past_.size());
  if (delay == 0) return remember(weight, context);
  const at::Tensor past = past_[delay - 1], kept = next_kept(past, context);
  if (is_plain(weight) && cpu::is_plain(gradient, at::kFloat)) {
    const auto w = elements_of(weight);
    float* const g = gradient.data_ptr<float>();
    float* const to = kept.data_ptr<float>();
    const float* const from = past.data_ptr<float>();
    cpu::for_elements(gradient.numel(), [&](int64_t begin, int64_t end) {
      compensate_loop(g + begin, w.from(begin), from + begin, to + begin, end - begin,
                      static_cast<float>(config.lambda));
    });
  } else {
    const at::Tensor now = whole(weight);
    gradient.addcmul_(gradient.square(), now - past, config.lambda);
    kept.copy_(now);
  }
  past_.push_front(kept);
}

void DelayCompensated::remember(const at::Tensor& weight, const UpdateContext& context) {
  const at::Tensor kept = next_kept(weight, context);
  kept.copy_(weight);
  past_.push_front(kept);
}

void DelayCompensated::remember(const SplitWeight& weight, const UpdateContext& context) {
  if (past_.size() > static_cast<size_t>(context.delay)) past_.pop_back();
  past_.push_front(joined(weight));
}

at::Tensor DelayCompensated::next_kept(const at::Tensor& like, const UpdateContext& context) {
  // One more than the delay, since delays grow while the pipeline fills.
  if (past_.size() <= static_cast<size_t>(context.delay)) return at::empty_like(like);
  at::Tensor kept = std::move(past_.back());
  past_.pop_back();
  return kept;
}

void DelayCompensated::load(const NamedTensors& state) {
  past_.clear();
  moments_.load(state);
}

}  // namespace gyre
