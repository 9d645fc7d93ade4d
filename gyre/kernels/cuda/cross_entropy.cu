// Cross-entropy and its gradient, a block of threads for each row: one pass for the maximum and the sum of exponentials
// together (Milakov and Gimelshein, 2018), one that writes the gradient. A row is in the cache by the second.
#include <cfloat>
#include <cmath>

#include "gyre/kernels/cuda/launch.h"
#include "gyre/kernels/cuda/pack.cuh"
#include "gyre/kernels/cuda/sums.cuh"

namespace gyre::cuda {
namespace {

constexpr int kRowThreads = 1024, kWarps = kRowThreads / kWarp;

// sum of e^(x - max), for the x seen so far.
struct Exponentials {
  float max, sum;
};

__device__ Exponentials joined(const Exponentials& a, const Exponentials& b) {
  const float max = fmaxf(a.max, b.max);
  return {max, a.sum * __expf(a.max - max) + b.sum * __expf(b.max - max)};
}

__device__ Exponentials of_warp(Exponentials mine) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    const Exponentials other{__shfl_xor_sync(0xffffffffu, mine.max, distance),
                             __shfl_xor_sync(0xffffffffu, mine.sum, distance)};
    // In one order on both sides, for the same bits.
    mine = (threadIdx.x & distance) == 0 ? joined(mine, other) : joined(other, mine);
  }
  return mine;
}

__device__ Exponentials of_block(Exponentials mine) {
  __shared__ Exponentials of_warps[kWarps];
  mine = of_warp(mine);
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = mine;
  __syncthreads();
  return of_warp(of_warps[threadIdx.x % kWarps]);
}

// A row's elements as this thread sees them: its share of packs, and of the elements before and behind them, since a
// row begins wherever the one before ends.
template <typename T>
class Row {
 public:
  __device__ Row(T* first, int64_t width) : first_(first), width_(width) {
    const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(first) % 16 / sizeof(T));
    lead_ = past == 0 ? 0 : min(width, static_cast<int64_t>(kPack<T>) - past);
    packs_ = (width - lead_) / kPack<T>;
  }
  // visit(pack, index of its first element, store); store() writes the pack back.
  template <typename Visit>
  __device__ void for_each(Visit&& visit) {
    auto* const packs = reinterpret_cast<Pack<T, kPack<T>>*>(first_ + lead_);
    for (int64_t i = threadIdx.x; i < packs_; i += kRowThreads) {
      Pack<T, kPack<T>> pack = packs[i];
      visit(pack, lead_ + i * kPack<T>, [&] { packs[i] = pack; });
    }
    const int64_t behind = lead_ + packs_ * kPack<T>;
    for (int64_t i = threadIdx.x; i < lead_ + width_ - behind; i += kRowThreads) {
      const int64_t at = i < lead_ ? i : behind + i - lead_;
      Pack<T, 1> single{{first_[at]}};
      visit(single, at, [&] { first_[at] = single.values[0]; });
    }
  }

 private:
  T* first_;
  int64_t width_, lead_, packs_;
};

template <typename T, int N>
__device__ constexpr int count_of(const Pack<T, N>&) {
  return N;
}

template <typename T>
__global__ void __launch_bounds__(kRowThreads)
    cross_entropy(T* logits, const int64_t* targets, double* losses, int64_t width, float weight) {
  T* const first = logits + static_cast<int64_t>(blockIdx.x) * width;
  Row<T> row(first, width);
  const int64_t target = targets[blockIdx.x];
  const bool is_class = target >= 0 && target < width;
  const float of_target = is_class ? to_float(first[target]) : NAN;  // before the second pass writes it

  Exponentials mine{-FLT_MAX, 0};
  row.for_each([&](auto& pack, int64_t, auto&&) {
    float max = mine.max;
    for (const T x : pack.values) max = fmaxf(max, to_float(x));
    float sum = mine.sum * __expf(mine.max - max);
    for (const T x : pack.values) sum += __expf(to_float(x) - max);
    mine = {max, sum};
  });
  const Exponentials whole = of_block(mine);  // waits for all threads

  // A target out of range makes the gradient NaN too, so that no update is made of it.
  const float factor = is_class ? weight / whole.sum : NAN;
  row.for_each([&](auto& pack, int64_t begin, auto&& store) {
    for (int i = 0; i < count_of(pack); ++i) {
      const float probability = __expf(to_float(pack.values[i]) - whole.max) * factor;
      pack.values[i] = from_float<T>(begin + i == target ? probability - weight : probability);
    }
    store();
  });
  if (threadIdx.x == 0) losses[blockIdx.x] = log(static_cast<double>(whole.sum)) + (double{whole.max} - of_target);
}

template <typename T>
void start(const CrossEntropy& work, cudaStream_t stream) {
  cross_entropy<<<static_cast<unsigned>(work.rows), kRowThreads, 0, stream>>>(
      static_cast<T*>(work.logits), work.targets, work.losses, work.width, work.weight);
}

}  // namespace

void launch(const CrossEntropy& work, Type type, cudaStream_t stream) {
  with_type(type, [&](auto t) { start<decltype(t)>(work, stream); });
}

}  // namespace gyre::cuda
