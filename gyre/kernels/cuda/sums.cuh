// Sums over the threads of a warp, in the same order on every lane.
#pragma once

namespace gyre::cuda {

constexpr int kWarp = 32;

__device__ inline float warp_sum(float mine) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, distance);
  return mine;
}

}  // namespace gyre::cuda
