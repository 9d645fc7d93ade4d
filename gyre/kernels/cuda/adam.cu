// Adam's pass: both moments take in the gradient, and the weight makes its step or the gradient becomes the direction.
#include "gyre/kernels/cuda/launch.h"
#include "gyre/kernels/cuda/pack.cuh"
#include "gyre/kernels/rounding_draw.h"

namespace gyre::cuda {
namespace {

constexpr uint32_t kStep = kDrawUpdateStep, kMix1 = kDrawMix1, kMix2 = kDrawMix2;

__device__ uint32_t drawn(float gradient, uint32_t update) {
  uint32_t x = __float_as_uint(gradient) + update * kStep;
  x = (x ^ (x >> 16)) * kMix1;
  x = (x ^ (x >> 15)) * kMix2;
  return x ^ (x >> 16);
}

// As it is kept. chance: below 2^16.
__device__ void keep(uint32_t, float* to, float value) {
  *to = value;
}
__device__ void keep(uint32_t chance, __nv_bfloat16* to, float value) {
  *to = __ushort_as_bfloat16(static_cast<unsigned short>((__float_as_uint(value) + chance) >> 16));
}

// N elements a thread.
template <typename Moment, int N>
__global__ void adam(Adam work) {
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * N;
  if (at >= work.count) return;
  auto gradient = load<float, N>(work.gradient, at);
  auto first = load<Moment, N>(work.exp_avg, at), second = load<Moment, N>(work.exp_avg_sq, at);
  Pack<float, N> weight{};
  if (work.weight != nullptr) weight = load<float, N>(work.weight, at);
  for (int i = 0; i < N; ++i) {
    const float g = work.factor * gradient.values[i];
    const float m = work.beta1 * to_float(first.values[i]) + work.rest1 * g;
    const float v = work.beta2 * to_float(second.values[i]) + work.rest2 * g * g;
    const uint32_t chance = sizeof(Moment) < sizeof(float) ? drawn(g, work.update) : 0;
    keep(chance & 0xFFFFu, &first.values[i], m);
    keep(chance >> 16, &second.values[i], v);
    const float dividend = m * work.inverse1 + work.gradient_share * g;
    const float direction = dividend / (sqrtf(v) * work.inverse_root2 + work.epsilon);
    gradient.values[i] = direction;
    weight.values[i] = work.keep * weight.values[i] - work.rate * direction;
  }
  store(work.exp_avg, at, first);
  store(work.exp_avg_sq, at, second);
  if (work.weight != nullptr) {
    store(work.weight, at, weight);
  } else {
    store(work.gradient, at, gradient);
  }
}

template <typename Moment, int N>
void start(const Adam& work, cudaStream_t stream) {
  adam<Moment, N><<<blocks_for((work.count + N - 1) / N), kThreads, 0, stream>>>(work);
}

}  // namespace

void launch(const Adam& work, Type moments, cudaStream_t stream) {
  if (work.count == 0) return;
  constexpr int kElements = 4;  // 16 bytes in fp32
  const auto fits = [](const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; };
  const bool packs = work.count % kElements == 0 && fits(work.weight) && fits(work.gradient) && fits(work.exp_avg) &&
                     fits(work.exp_avg_sq);
  with_type(moments, [&](auto moment) {
    using Moment = decltype(moment);
    packs ? start<Moment, kElements>(work, stream) : start<Moment, 1>(work, stream);
  });
}

}  // namespace gyre::cuda
