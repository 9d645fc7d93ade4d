// Numbers as kernels read and write them: 16 bytes at a time, computed in fp32.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace gyre::cuda {

template <typename T, int N>
struct alignas(N * sizeof(T)) Pack {
  T values[N];
};

// Elements of 16 bytes.
template <typename T>
constexpr int kPack = 16 / sizeof(T);

inline bool is_aligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % 16 == 0;
}

__device__ inline float to_float(float x) {
  return x;
}
__device__ inline float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}

template <typename T>
__device__ T from_float(float x);
template <>
__device__ inline float from_float<float>(float x) {
  return x;
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

// x as it is after being stored in a T.
template <typename T>
__device__ float rounded(float x) {
  return to_float(from_float<T>(x));
}

constexpr int kThreads = 256;

inline unsigned blocks_for(int64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

}  // namespace gyre::cuda
