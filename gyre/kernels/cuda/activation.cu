// Activation functions, plain and gated, forward and backward: a thread for each pack of elements. Intermediate values
// are rounded where the CPU's kernels round them.
#include "gyre/kernels/cuda/launch.h"
#include "gyre/kernels/cuda/pack.cuh"

namespace gyre::cuda {
namespace {

// f(x) and f'(x).
struct Point {
  float value, slope;
};

__device__ float sigmoid(float x) {
  return 1 / (1 + __expf(-x));
}

// The same functions as in kernels/activation.cpp.
struct Gelu {
  __device__ static Point at(float x) {
    constexpr float kBySqrtTwo = 0.70710678f, kBySqrtTwoPi = 0.39894228f;
    const float phi = 0.5f * (1 + erff(x * kBySqrtTwo));
    return {x * phi, phi + x * __expf(-0.5f * x * x) * kBySqrtTwoPi};
  }
};
struct GeluTanh {
  __device__ static Point at(float x) {
    constexpr float kFactor = 2 * 0.79788456f, kCubic = 0.044715f;
    const float s = sigmoid(kFactor * (x + kCubic * x * x * x));
    return {x * s, s + x * s * (1 - s) * kFactor * (1 + 3 * kCubic * x * x)};
  }
};
struct Relu {
  __device__ static Point at(float x) { return {x < 0 ? 0 : x, x <= 0 ? 0.0f : 1.0f}; }  // NaN stays
};
struct Silu {
  __device__ static Point at(float x) {
    const float s = sigmoid(x);
    return {x * s, s + x * s * (1 - s)};
  }
};

template <typename Function, typename T, int N>
__global__ void plain(const Activated work, int64_t threads) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (thread >= threads) return;
  const Pack<T, N> x = load<T, N>(work.x, thread * N);
  Pack<T, N> y, grad;
  if (work.grad != nullptr) grad = load<T, N>(work.grad, thread * N);
  for (int i = 0; i < N; ++i) {
    const Point point = Function::at(to_float(x.values[i]));
    y.values[i] = from_float<T>(point.value);
    if (work.grad != nullptr) grad.values[i] = from_float<T>(to_float(grad.values[i]) * point.slope);
  }
  store(work.y, thread * N, y);
  if (work.grad != nullptr) store(work.grad_x, thread * N, grad);
}

template <typename Function, typename T, int N>
__global__ void gated(const Activated work, int64_t threads) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (thread >= threads) return;
  const int64_t row = thread / (work.n / N), column = thread % (work.n / N) * N;
  const int64_t narrow = row * work.n + column, gate_at = 2 * row * work.n + column, up_at = gate_at + work.n;
  const Pack<T, N> gate = load<T, N>(work.x, gate_at), up = load<T, N>(work.x, up_at);
  Pack<T, N> y, grad, grad_gate, grad_up;
  if (work.grad != nullptr) grad = load<T, N>(work.grad, narrow);
  for (int i = 0; i < N; ++i) {
    const Point point = Function::at(to_float(gate.values[i]));
    const float value = rounded<T>(point.value), u = to_float(up.values[i]);
    y.values[i] = from_float<T>(value * u);
    if (work.grad == nullptr) continue;
    const float g = to_float(grad.values[i]);
    grad_gate.values[i] = from_float<T>(rounded<T>(g * u) * point.slope);
    grad_up.values[i] = from_float<T>(value * g);
  }
  store(work.y, narrow, y);
  if (work.grad == nullptr) return;
  store(work.grad_x, gate_at, grad_gate);
  store(work.grad_x, up_at, grad_up);
}

template <typename Function, typename T, int N>
void start(const Activated& work, cudaStream_t stream) {
  const int64_t threads = work.rows * work.n / N;
  if (threads == 0) return;
  if (work.gated) {
    gated<Function, T, N><<<blocks_for(threads), kThreads, 0, stream>>>(work, threads);
  } else {
    plain<Function, T, N><<<blocks_for(threads), kThreads, 0, stream>>>(work, threads);
  }
}

template <typename Function, typename T>
void start(const Activated& work, cudaStream_t stream) {
  const int64_t width = work.gated ? work.n : work.rows * work.n;
  in_packs<T>(width, {work.x, work.grad, work.y, work.grad_x}) ? start<Function, T, kPack<T>>(work, stream)
                                                               : start<Function, T, 1>(work, stream);
}

template <typename T>
void start(const Activated& work, Activation activation, cudaStream_t stream) {
  switch (activation) {
    case Activation::Gelu:
      return start<Gelu, T>(work, stream);
    case Activation::GeluTanh:
      return start<GeluTanh, T>(work, stream);
    case Activation::Relu:
      return start<Relu, T>(work, stream);
    case Activation::Silu:
      return start<Silu, T>(work, stream);
  }
}

}  // namespace

void launch(const Activated& work, Activation activation, Type type, cudaStream_t stream) {
  with_type(type, [&](auto t) { start<decltype(t)>(work, activation, stream); });
}

}  // namespace gyre::cuda
