#include "gyre/optim/parameter/adam_kernel.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <type_traits>

#include "gyre/kernels/adam.h"
#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/parallel_for.h"
#include "gyre/kernels/rounding_draw.h"
#include "gyre/optim/parameter/split_loops.h"

namespace gyre {
namespace {

// The factors as the loop needs them.
struct Scalars {
  float beta1, rest1, beta2, rest2, inverse1, inverse_root2, epsilon, gradient_share;
  uint32_t update;
};
Scalars scalars(const AdamFactors& f) {
  return {static_cast<float>(f.beta1),           static_cast<float>(1 - f.beta1),
          static_cast<float>(f.beta2),           static_cast<float>(1 - f.beta2),
          static_cast<float>(1 / f.correction1), static_cast<float>(1 / std::sqrt(f.correction2)),
          static_cast<float>(f.epsilon),         static_cast<float>(f.gradient_share),
          static_cast<uint32_t>(f.update)};
}

fused::AdamPass pass_of(const AdamFactors& f, double rate, double keep, double factor) {
  return {f.beta1, f.beta2, f.epsilon, f.correction1, f.correction2, f.gradient_share, f.update, rate, keep, factor};
}

constexpr int64_t kAllBits = 0xFFFFFFFF;

GYRE_INLINE uint32_t drawn(float gradient, uint32_t update) {
  uint32_t x = std::bit_cast<uint32_t>(gradient) + update * kDrawUpdateStep;
  x = (x ^ (x >> 16)) * kDrawMix1;
  x = (x ^ (x >> 15)) * kDrawMix2;
  return x ^ (x >> 16);
}

// chance: below 2^16.
GYRE_INLINE void store_by(uint32_t, float* to, float value) {
  *to = value;
}
GYRE_INLINE void store_by(uint32_t chance, c10::BFloat16* to, float value) {
  to->x = static_cast<uint16_t>((std::bit_cast<uint32_t>(value) + chance) >> 16);
}

// (m / c1 + share g) over (sqrt(v / c2) + eps).
struct Direction {
  float dividend, divisor;
};

// Both moments take in the gradient.
template <typename Moment>
GYRE_INLINE Direction take_in(float gradient, Moment* m, Moment* v, const Scalars& s) {
  const float first = s.beta1 * cpu::load(m) + s.rest1 * gradient;
  const float second = s.beta2 * cpu::load(v) + s.rest2 * gradient * gradient;
  const uint32_t chance = std::is_same_v<Moment, float> ? 0 : drawn(gradient, s.update);
  store_by(chance & 0xFFFFu, m, first);
  store_by(chance >> 16, v, second);
  return {first * s.inverse1 + s.gradient_share * gradient, std::sqrt(second) * s.inverse_root2 + s.epsilon};
}

// A weight in either form, with error feedback.
template <typename Elements>
struct FedBackElements {
  Elements w;
  float* last_step;
  float late;  // 1, or 0

  FedBackElements from(int64_t i) const { return {w.from(i), last_step + i, late}; }
  GYRE_INLINE float load(int64_t i) const { return w.load(i); }
  GYRE_INLINE void store(int64_t i, float value) const {
    const float step = w.load(i) - value;
    w.store(i, value - late * (step - last_step[i]));
    last_step[i] = step;
  }
};

// Each element is by itself, so vectors change nothing. Rounding of products is the compiler's, fixed per machine.
template <typename Weight, typename Moment>
GYRE_INLINE void step_elements(Weight w, const float* __restrict g, Moment* __restrict m, Moment* __restrict v,
                               int64_t count, Scalars s, float rate, float keep, float factor) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const Direction direction = take_in(factor * g[i], m + i, v + i, s);
    w.store(i, keep * w.load(i) - rate * direction.dividend / direction.divisor);
  }
}

template <typename Moment>
GYRE_INLINE void direction_elements(float* __restrict g, Moment* __restrict m, Moment* __restrict v, int64_t count,
                                    Scalars s) {
  for (int64_t i = 0; i < count; ++i) {
    const Direction direction = take_in(g[i], m + i, v + i, s);
    g[i] = direction.dividend / direction.divisor;
  }
}

#define GYRE_ADAM_STEP(Weight, Moment)                                                                                 \
  GYRE_CPU_KERNEL void step_loop(Weight w, const float* g, Moment* m, Moment* v, int64_t count, Scalars s, float rate, \
                                 float keep, float factor) {                                                           \
    step_elements(w, g, m, v, count, s, rate, keep, factor);                                                           \
  }
#define GYRE_ADAM(Moment)                                                                         \
  GYRE_ADAM_STEP(WholeElements, Moment)                                                           \
  GYRE_ADAM_STEP(SplitElements, Moment)                                                           \
  GYRE_ADAM_STEP(FedBackElements<WholeElements>, Moment)                                          \
  GYRE_ADAM_STEP(FedBackElements<SplitElements>, Moment)                                          \
  GYRE_CPU_KERNEL void direction_loop(float* g, Moment* m, Moment* v, int64_t count, Scalars s) { \
    direction_elements(g, m, v, count, s);                                                        \
  }
GYRE_ADAM(float)
GYRE_ADAM(c10::BFloat16)
#undef GYRE_ADAM
#undef GYRE_ADAM_STEP

bool are_plain(std::initializer_list<at::Tensor> tensors, at::ScalarType type) {
  return std::all_of(tensors.begin(), tensors.end(), [type](const at::Tensor& t) { return cpu::is_plain(t, type); });
}

// Whether a loop did it.
template <typename Elements>
bool cpu_step(const Elements& w, const at::Tensor& gradient, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
              const AdamFactors& factors, double rate, double decay, double factor) {
  if (!cpu::is_plain(gradient, at::kFloat)) return false;
  const auto loop = [&]<typename Moment>(Moment* m) {
    const float* g = gradient.data_ptr<float>();
    Moment* const v = exp_avg_sq.data_ptr<Moment>();
    cpu::for_elements(gradient.numel(), [&](int64_t begin, int64_t end) {
      step_loop(w.from(begin), g + begin, m + begin, v + begin, end - begin, scalars(factors), static_cast<float>(rate),
                static_cast<float>(1 - decay), static_cast<float>(factor));
    });
  };
  if (are_plain({exp_avg, exp_avg_sq}, at::kFloat)) {
    loop(exp_avg.data_ptr<float>());
  } else if (are_plain({exp_avg, exp_avg_sq}, at::kBFloat16)) {
    loop(exp_avg.data_ptr<c10::BFloat16>());
  } else {
    return false;
  }
  return true;
}

// The same in passes, for devices.
void fed_back_passes(const FedBack<at::Tensor>& fed, const at::Tensor& gradient, const at::Tensor& exp_avg,
                     const at::Tensor& exp_avg_sq, const AdamFactors& factors, double rate, double decay,
                     double factor) {
  const at::Tensor before = fed.weight.clone();
  adamw_step(fed.weight, gradient, exp_avg, exp_avg_sq, factors, rate, decay, factor);
  const at::Tensor step = before - fed.weight;
  if (fed.late) fed.weight.sub_((step - fed.last_step).mul_(fed.last_step.any()));
  fed.last_step.copy_(step);
}
void fed_back_passes(const FedBack<SplitWeight>& fed, const at::Tensor& gradient, const at::Tensor& exp_avg,
                     const at::Tensor& exp_avg_sq, const AdamFactors& factors, double rate, double decay,
                     double factor) {
  const at::Tensor whole = joined(fed.weight);
  fed_back_passes({whole, fed.last_step, fed.late}, gradient, exp_avg, exp_avg_sq, factors, rate, decay, factor);
  split(whole, fed.weight);
}

// Ends at the first one, which is seldom far.
bool has_other_than_zeros(const at::Tensor& x) {
  const float* const from = x.data_ptr<float>();
  return std::any_of(from, from + x.numel(), [](float value) { return value != 0; });
}

template <typename Weight>
void fed_back_step(const FedBack<Weight>& fed, const at::Tensor& gradient, const at::Tensor& exp_avg,
                   const at::Tensor& exp_avg_sq, const AdamFactors& factors, double rate, double decay, double factor) {
  const at::Tensor& last = fed.last_step;
  bool done = false;
  if (is_plain(fed.weight) && is_plain(last)) {
    using Elements = decltype(elements_of(fed.weight));
    const float late = fed.late && has_other_than_zeros(last) ? 1 : 0;
    const FedBackElements<Elements> w{elements_of(fed.weight), last.data_ptr<float>(), late};
    done = cpu_step(w, gradient, exp_avg, exp_avg_sq, factors, rate, decay, factor);
  }
  if (!done) fed_back_passes(fed, gradient, exp_avg, exp_avg_sq, factors, rate, decay, factor);
}

template <typename Moment>
void cpu_direction(const at::Tensor& gradient, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
                   const Scalars& s) {
  float* const g = gradient.data_ptr<float>();
  Moment *const m = exp_avg.data_ptr<Moment>(), *const v = exp_avg_sq.data_ptr<Moment>();
  cpu::for_elements(gradient.numel(), [&](int64_t begin, int64_t end) {
    direction_loop(g + begin, m + begin, v + begin, end - begin, s);
  });
}

// As unsigned numbers.
at::Tensor bits_of(const at::Tensor& x) {
  return x.contiguous().view(at::kInt).to(at::kLong).bitwise_and_(kAllBits);
}

// m and v become the bf16 moments, rounded as drawn() and store_by() do, in numbers of 64 bits.
void round_moments(const at::Tensor& m, const at::Tensor& v, const at::Tensor& gradient, int64_t update,
                   const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq) {
  const auto mixed = [](const at::Tensor& x, int shift) {
    return x.bitwise_xor(x.bitwise_right_shift(shift)).bitwise_and_(kAllBits);
  };
  at::Tensor chance = (bits_of(gradient) + static_cast<int64_t>(static_cast<uint32_t>(update) * kDrawUpdateStep));
  chance = mixed(chance.bitwise_and_(kAllBits), 16) * static_cast<int64_t>(kDrawMix1);
  chance = mixed(chance.bitwise_and_(kAllBits), 15) * static_cast<int64_t>(kDrawMix2);
  chance = mixed(chance.bitwise_and_(kAllBits), 16);
  const auto store_by = [](const at::Tensor& by, const at::Tensor& to, const at::Tensor& x) {
    to.copy_((bits_of(x) + by).bitwise_right_shift(16).to(at::kShort).view(at::kBFloat16));
  };
  store_by(chance.bitwise_and(0xFFFF), exp_avg, m);
  store_by(chance.bitwise_right_shift(16), exp_avg_sq, v);
}

// (m / c1 + share g) / (sqrt(v / c2) + eps), the moments having taken in the gradient.
at::Tensor direction_of(const at::Tensor& gradient, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
                        const AdamFactors& f) {
  // fp32 moments are these.
  const at::Tensor m = exp_avg.to(at::kFloat), v = exp_avg_sq.to(at::kFloat);
  m.mul_(f.beta1).add_(gradient, 1 - f.beta1);
  v.mul_(f.beta2).addcmul_(gradient, gradient, 1 - f.beta2);
  if (exp_avg.scalar_type() != at::kFloat) round_moments(m, v, gradient, f.update, exp_avg, exp_avg_sq);
  const at::Tensor dividend = m.div(f.correction1);
  if (f.gradient_share != 0) dividend.add_(gradient, f.gradient_share);
  return dividend.div_(v.sqrt().div_(std::sqrt(f.correction2)).add_(f.epsilon));
}

}  // namespace

AdamFactors adam_factors(double beta1, double beta2, double epsilon, int64_t update) {
  const auto t = static_cast<double>(update);
  return {beta1, beta2, epsilon, 1 - std::pow(beta1, t), 1 - std::pow(beta2, t), update};
}

void portable::adamw_step(const at::Tensor& weight, const at::Tensor& gradient, const at::Tensor& exp_avg,
                          const at::Tensor& exp_avg_sq, const AdamFactors& factors, double rate, double decay,
                          double factor) {
  const at::Tensor direction = direction_of(factor == 1 ? gradient : gradient * factor, exp_avg, exp_avg_sq, factors);
  weight.mul_(1 - decay).sub_(direction, rate);
}

void portable::adamw_step(const SplitWeight& weight, const at::Tensor& gradient, const at::Tensor& exp_avg,
                          const at::Tensor& exp_avg_sq, const AdamFactors& factors, double rate, double decay,
                          double factor) {
  const at::Tensor whole = portable::joined(weight);
  portable::adamw_step(whole, gradient, exp_avg, exp_avg_sq, factors, rate, decay, factor);
  portable::split(whole, weight);
}

void portable::adam_direction(const at::Tensor& gradient, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
                              const AdamFactors& factors) {
  gradient.copy_(direction_of(gradient, exp_avg, exp_avg_sq, factors));
}

void adamw_step(const at::Tensor& weight, const at::Tensor& gradient, const at::Tensor& exp_avg,
                const at::Tensor& exp_avg_sq, const AdamFactors& factors, double rate, double decay, double factor) {
  const bool done = (is_plain(weight) &&
                     cpu_step(elements_of(weight), gradient, exp_avg, exp_avg_sq, factors, rate, decay, factor)) ||
                    fused::adam(weight, gradient, exp_avg, exp_avg_sq, pass_of(factors, rate, 1 - decay, factor));
  if (!done) portable::adamw_step(weight, gradient, exp_avg, exp_avg_sq, factors, rate, decay, factor);
}

void adamw_step(const SplitWeight& weight, const at::Tensor& gradient, const at::Tensor& exp_avg,
                const at::Tensor& exp_avg_sq, const AdamFactors& factors, double rate, double decay, double factor) {
  const bool done =
      is_plain(weight) && cpu_step(elements_of(weight), gradient, exp_avg, exp_avg_sq, factors, rate, decay, factor);
  if (!done) portable::adamw_step(weight, gradient, exp_avg, exp_avg_sq, factors, rate, decay, factor);
}

void adamw_step(const FedBack<at::Tensor>& weight, const at::Tensor& gradient, const at::Tensor& exp_avg,
                const at::Tensor& exp_avg_sq, const AdamFactors& factors, double rate, double decay, double factor) {
  fed_back_step(weight, gradient, exp_avg, exp_avg_sq, factors, rate, decay, factor);
}

void adamw_step(const FedBack<SplitWeight>& weight, const at::Tensor& gradient, const at::Tensor& exp_avg,
                const at::Tensor& exp_avg_sq, const AdamFactors& factors, double rate, double decay, double factor) {
  fed_back_step(weight, gradient, exp_avg, exp_avg_sq, factors, rate, decay, factor);
}

void adam_direction(const at::Tensor& gradient, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
                    const AdamFactors& factors) {
  const bool plain = cpu::is_plain(gradient, at::kFloat);
  if (plain && are_plain({exp_avg, exp_avg_sq}, at::kFloat)) {
    cpu_direction<float>(gradient, exp_avg, exp_avg_sq, scalars(factors));
  } else if (plain && are_plain({exp_avg, exp_avg_sq}, at::kBFloat16)) {
    cpu_direction<c10::BFloat16>(gradient, exp_avg, exp_avg_sq, scalars(factors));
  } else if (!fused::adam({}, gradient, exp_avg, exp_avg_sq, pass_of(factors, 0, 1, 1))) {
    portable::adam_direction(gradient, exp_avg, exp_avg_sq, factors);
  }
}

}  // namespace gyre
