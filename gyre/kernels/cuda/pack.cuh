// Numbers as kernels read and write them: 16 bytes at a time, computed in fp32.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <initializer_list>

#include "gyre/kernels/cuda/launch.h"

namespace gyre::cuda {

template <typename T, int N>
struct alignas(N * sizeof(T)) Pack {
  T values[N];
};

// Elements of 16 bytes.
template <typename T>
constexpr int kPack = 16 / sizeof(T);

// Whether all of it can be read and written in packs: rows of `width` elements, at these addresses (null: not there).
template <typename T>
bool in_packs(int64_t width, std::initializer_list<const void*> addresses) {
  bool result = width % kPack<T> == 0;
  for (const void* address : addresses) result = result && reinterpret_cast<uintptr_t>(address) % 16 == 0;
  return result;
}

// The N elements from number `at` on.
template <typename T, int N>
__device__ Pack<T, N> load(const void* from, int64_t at) {
  return *reinterpret_cast<const Pack<T, N>*>(static_cast<const T*>(from) + at);
}
template <typename T, int N>
__device__ void store(void* to, int64_t at, const Pack<T, N>& pack) {
  *reinterpret_cast<Pack<T, N>*>(static_cast<T*>(to) + at) = pack;
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

// work(T()) for the type's T.
template <typename Work>
void with_type(Type type, Work&& work) {
  type == Type::Float ? work(float()) : work(__nv_bfloat16());
}

constexpr int kThreads = 256;

inline unsigned blocks_for(int64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

}  // namespace gyre::cuda
