// Layer norm and RMSNorm: a warp for each row, which it reads again from the cache for each of its sums.
#include "gyre/kernels/cuda/launch.h"
#include "gyre/kernels/cuda/pack.cuh"
#include "gyre/kernels/cuda/sums.cuh"

namespace gyre::cuda {
namespace {

constexpr int kRows = kThreads / kWarp;  // of a block

// visit(i) for the packs of a row, or the elements, that are this lane's.
template <int N, typename Visit>
__device__ void for_row(int64_t width, Visit&& visit) {
  for (int64_t i = threadIdx.x % kWarp * N; i < width; i += kWarp * N) visit(i);
}

// The sum of term(x) over a row's elements, in fp32.
template <typename T, int N, typename Term>
__device__ float row_sum(const T* row, int64_t width, Term&& term) {
  float sum = 0;
  for_row<N>(width, [&](int64_t i) {
    const Pack<T, N> pack = load<T, N>(row, i);
    for (const T value : pack.values) sum += term(to_float(value));
  });
  return warp_sum(sum);
}

// make(pack, i) for this lane's packs of a row, which are then written.
template <typename T, int N, typename Make>
__device__ void write_row(T* row, int64_t width, Make&& make) {
  for_row<N>(width, [&](int64_t i) {
    Pack<T, N> pack;
    make(pack, i);
    store(row, i, pack);
  });
}

template <typename T, int N>
__global__ void forward(const NormForward work) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / kWarp;
  if (row >= work.rows) return;
  const int64_t width = work.width;
  const T* const x = static_cast<const T*>(work.x) + row * width;
  float mean = 0, rstd = 0;
  if (work.has_statistics) {
    mean = work.mean == nullptr ? 0 : work.mean[row];
    rstd = work.rstd[row];
  } else {
    const auto count = static_cast<float>(width);
    if (work.mean != nullptr) mean = row_sum<T, N>(x, width, [](float value) { return value; }) / count;
    const auto square = [mean](float value) { return (value - mean) * (value - mean); };
    rstd = 1 / sqrtf(row_sum<T, N>(x, width, square) / count + work.epsilon);
    if (threadIdx.x % kWarp == 0) {
      if (work.mean != nullptr) work.mean[row] = mean;
      work.rstd[row] = rstd;
    }
  }
  const T *const weight = static_cast<const T*>(work.weight), *const bias = static_cast<const T*>(work.bias);
  write_row<T, N>(static_cast<T*>(work.y) + row * width, width, [&](Pack<T, N>& y, int64_t i) {
    const Pack<T, N> from = load<T, N>(x, i), w = load<T, N>(weight, i);
    Pack<T, N> b;
    if (bias != nullptr) b = load<T, N>(bias, i);
    for (int j = 0; j < N; ++j) {
      const float scaled = (to_float(from.values[j]) - mean) * rstd * to_float(w.values[j]);
      y.values[j] = from_float<T>(bias == nullptr ? scaled : scaled + to_float(b.values[j]));
    }
  });
}

// With n = (x - mean) rstd and h = grad weight: dx = rstd (h - mean(h) - n mean(h n)), in an RMSNorm without mean(h).
template <typename T, int N>
__global__ void backward(const NormBackward work) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / kWarp;
  if (row >= work.rows) return;
  const int64_t width = work.width;
  const T* const x = static_cast<const T*>(work.x) + row * width;
  const T* const grad = static_cast<const T*>(work.grad) + row * width;
  const T* const weight = static_cast<const T*>(work.weight);
  const float mean = work.mean == nullptr ? 0 : work.mean[row], rstd = work.rstd[row];
  const auto normed = [=](T value) { return (to_float(value) - mean) * rstd; };
  float sum_h = 0, sum_hn = 0;
  for_row<N>(width, [&](int64_t i) {
    const Pack<T, N> xs = load<T, N>(x, i), grads = load<T, N>(grad, i), weights = load<T, N>(weight, i);
    for (int j = 0; j < N; ++j) {
      const float h = to_float(grads.values[j]) * to_float(weights.values[j]);
      sum_h += h;
      sum_hn += h * normed(xs.values[j]);
    }
  });
  const float mean_h = work.mean == nullptr ? 0 : warp_sum(sum_h) / static_cast<float>(width);
  const float mean_hn = warp_sum(sum_hn) / static_cast<float>(width);
  write_row<T, N>(static_cast<T*>(work.grad_x) + row * width, width, [&](Pack<T, N>& to, int64_t i) {
    const Pack<T, N> xs = load<T, N>(x, i), grads = load<T, N>(grad, i), weights = load<T, N>(weight, i);
    for (int j = 0; j < N; ++j) {
      const float h = to_float(grads.values[j]) * to_float(weights.values[j]);
      to.values[j] = from_float<T>(rstd * (h - mean_h - normed(xs.values[j]) * mean_hn));
    }
  });
}

template <typename T>
void start(const NormForward& work, cudaStream_t stream) {
  const unsigned blocks = blocks_for(work.rows * kWarp);
  if (in_packs<T>(work.width, {work.x, work.weight, work.bias, work.y})) {
    forward<T, kPack<T>><<<blocks, kThreads, 0, stream>>>(work);
  } else {
    forward<T, 1><<<blocks, kThreads, 0, stream>>>(work);
  }
}

template <typename T>
void start(const NormBackward& work, cudaStream_t stream) {
  const unsigned blocks = blocks_for(work.rows * kWarp);
  if (in_packs<T>(work.width, {work.grad, work.x, work.weight, work.grad_x})) {
    backward<T, kPack<T>><<<blocks, kThreads, 0, stream>>>(work);
  } else {
    backward<T, 1><<<blocks, kThreads, 0, stream>>>(work);
  }
}

}  // namespace

void launch(const NormForward& work, Type type, cudaStream_t stream) {
  with_type(type, [&](auto t) { start<decltype(t)>(work, stream); });
}
void launch(const NormBackward& work, Type type, cudaStream_t stream) {
  with_type(type, [&](auto t) { start<decltype(t)>(work, stream); });
}

}  // namespace gyre::cuda
