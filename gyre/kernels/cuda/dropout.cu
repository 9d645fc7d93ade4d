// Dropout's mask from the counter-based stream of core/random.h: a thread for each block of four elements.
#include "gyre/core/philox.h"
#include "gyre/kernels/cuda/launch.h"
#include "gyre/kernels/cuda/pack.cuh"

namespace gyre::cuda {
namespace {

constexpr uint32_t kFactor0 = kPhiloxFactors[0], kFactor1 = kPhiloxFactors[1];
constexpr uint32_t kStep0 = kPhiloxKeySteps[0], kStep1 = kPhiloxKeySteps[1];

// philox4x32_10
__device__ uint4 words_of(uint4 c, uint2 key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    c = {__umulhi(kFactor1, c.z) ^ c.y ^ key.x, kFactor1 * c.z, __umulhi(kFactor0, c.x) ^ c.w ^ key.y, kFactor0 * c.x};
    key.x += kStep0;
    key.y += kStep1;
  }
  return c;
}

__global__ void dropout_mask(bool* mask, int64_t count, uint4 counter, uint2 key, uint32_t threshold) {
  const int64_t block = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (4 * block >= count) return;
  counter.x += static_cast<uint32_t>(block);
  const uint4 words = words_of(counter, key);
  const uint32_t in_order[4] = {words.x, words.y, words.z, words.w};
  Pack<bool, 4> values;
  for (int i = 0; i < 4; ++i) values.values[i] = in_order[i] >= threshold;
  if (4 * block + 4 <= count) {
    reinterpret_cast<Pack<bool, 4>*>(mask)[block] = values;
  } else {
    for (int i = 0; 4 * block + i < count; ++i) mask[4 * block + i] = values.values[i];
  }
}

}  // namespace

void launch(const DropoutMask& work, cudaStream_t stream) {
  const auto& [c0, c1, c2, c3] = work.counter;
  dropout_mask<<<blocks_for((work.count + 3) / 4), kThreads, 0, stream>>>(
      work.mask, work.count, uint4{c0, c1, c2, c3}, uint2{work.key[0], work.key[1]}, work.threshold);
}

}  // namespace gyre::cuda
