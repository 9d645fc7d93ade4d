// Rotary positions in place: a thread for each pack of pairs.
#include "gyre/kernels/cuda/launch.h"
#include "gyre/kernels/cuda/pack.cuh"

namespace gyre::cuda {
namespace {

// Products are rounded before they are added, as on the CPU.
template <typename T, int N>
__global__ void rotate(const Rotation work, int64_t threads) {
  int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= threads) return;
  const int64_t packs = work.half / N;
  const int64_t i = at % packs * N;
  const int64_t head = (at /= packs) % work.heads;
  const int64_t position = (at /= work.heads) % work.positions;
  const int64_t sequence = at / work.positions;
  T* const row = static_cast<T*>(work.x) + sequence * work.sequence_stride + head * work.head_stride +
                 position * work.position_stride + i;
  auto& first = *reinterpret_cast<Pack<T, N>*>(row);
  auto& second = *reinterpret_cast<Pack<T, N>*>(row + work.half);
  const float *cos = work.cos + position * work.half + i, *sin = work.sin + position * work.half + i;
  Pack<T, N> a = first, b = second;
  for (int j = 0; j < N; ++j) {
    const float x = to_float(a.values[j]), y = to_float(b.values[j]), c = cos[j], s = work.direction * sin[j];
    a.values[j] = from_float<T>(__fsub_rn(__fmul_rn(x, c), __fmul_rn(y, s)));
    b.values[j] = from_float<T>(__fadd_rn(__fmul_rn(y, c), __fmul_rn(x, s)));
  }
  first = a;
  second = b;
}

template <typename T, int N>
void start(const Rotation& work, cudaStream_t stream) {
  const int64_t threads = work.batch * work.positions * work.heads * (work.half / N);
  if (threads > 0) rotate<T, N><<<blocks_for(threads), kThreads, 0, stream>>>(work, threads);
}

template <typename T>
void start(const Rotation& work, cudaStream_t stream) {
  const int64_t strides = work.sequence_stride | work.head_stride | work.position_stride;
  const bool packs = in_packs<T>(work.half, {work.x}) && strides % kPack<T> == 0;
  packs ? start<T, kPack<T>>(work, stream) : start<T, 1>(work, stream);
}

}  // namespace

void launch(const Rotation& work, Type type, cudaStream_t stream) {
  with_type(type, [&](auto t) { start<decltype(t)>(work, stream); });
}

}  // namespace gyre::cuda
