// Sums of a matrix's columns: gradients of biases and of norms' weights. A block sums a piece of the rows of some
// columns, and a second kernel sums the pieces, both in a fixed order.
#include "gyre/kernels/cuda/launch.h"
#include "gyre/kernels/cuda/pack.cuh"
#include "gyre/kernels/cuda/sums.cuh"

namespace gyre::cuda {
namespace {

constexpr int kRows = kThreads / kWarp;  // that a block reads at a time

// Sums of N columns: of grad, and of grad (x - mean) rstd.
template <int N>
struct Sums {
  float plain[N] = {}, normed[N] = {};
};

// blockIdx.x: the columns; blockIdx.y: the piece of rows.
template <typename T, int N>
__global__ void sum_pieces(const ColumnSums work, int64_t rows_of_piece) {
  __shared__ float across[kRows][kWarp * N];
  const int lane = threadIdx.x % kWarp, line = threadIdx.x / kWarp;
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * kWarp + lane) * N;
  const int64_t first = blockIdx.y * rows_of_piece, last = min(work.rows, first + rows_of_piece);
  Sums<N> sums;
  if (column < work.width) {
#pragma unroll 4
    for (int64_t row = first + line; row < last; row += kRows) {
      const Pack<T, N> grads = load<T, N>(work.grad, row * work.width + column);
      for (int j = 0; j < N; ++j) sums.plain[j] += to_float(grads.values[j]);
      if (work.x == nullptr) continue;
      const Pack<T, N> xs = load<T, N>(work.x, row * work.width + column);
      const float mean = work.mean == nullptr ? 0 : work.mean[row], rstd = work.rstd[row];
      for (int j = 0; j < N; ++j)
        sums.normed[j] += to_float(grads.values[j]) * ((to_float(xs.values[j]) - mean) * rstd);
    }
  }
  const auto write = [&](const float* mine, float* pieces) {
    for (int j = 0; j < N; ++j) across[line][lane * N + j] = mine[j];
    __syncthreads();
    for (int i = threadIdx.x; i < kWarp * N; i += kThreads) {
      float sum = 0;
      for (int k = 0; k < kRows; ++k) sum += across[k][i];
      const int64_t to = static_cast<int64_t>(blockIdx.x) * kWarp * N + i;
      if (to < work.width) pieces[blockIdx.y * work.width + to] = sum;
    }
    __syncthreads();
  };
  if (work.plain != nullptr) write(sums.plain, work.pieces);
  if (work.x != nullptr) write(sums.normed, work.pieces + work.count_pieces * work.width);
}

// blockIdx.y: 0 for plain sums, 1 for normed ones.
__global__ void add_pieces(const ColumnSums work) {
  __shared__ float across[kRows][kWarp];
  const int lane = threadIdx.x % kWarp, line = threadIdx.x / kWarp;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarp + lane;
  float* const to = blockIdx.y == 0 ? work.plain : work.normed;
  const float* const pieces = work.pieces + blockIdx.y * work.count_pieces * work.width;
  float sum = 0;
  if (column < work.width && to != nullptr) {
    for (int64_t piece = line; piece < work.count_pieces; piece += kRows) sum += pieces[piece * work.width + column];
  }
  across[line][lane] = sum;
  __syncthreads();
  if (line != 0 || column >= work.width || to == nullptr) return;
  for (int k = 1; k < kRows; ++k) sum += across[k][lane];
  to[column] = work.adds ? to[column] + sum : sum;
}

unsigned columns_in(int64_t width, int of_block) {
  return static_cast<unsigned>((width + of_block - 1) / of_block);
}

template <typename T, int N>
void start(const ColumnSums& work, cudaStream_t stream) {
  const int64_t rows_of_piece = (work.rows + work.count_pieces - 1) / work.count_pieces;
  const auto pieces = static_cast<unsigned>(work.count_pieces);
  sum_pieces<T, N><<<dim3(columns_in(work.width, kWarp * N), pieces), kThreads, 0, stream>>>(work, rows_of_piece);
  add_pieces<<<dim3(columns_in(work.width, kWarp), work.x == nullptr ? 1 : 2), kThreads, 0, stream>>>(work);
}

template <typename T>
void start(const ColumnSums& work, cudaStream_t stream) {
  in_packs<T>(work.width, {work.grad, work.x}) ? start<T, kPack<T>>(work, stream) : start<T, 1>(work, stream);
}

}  // namespace

int64_t column_sum_pieces(int64_t rows, int64_t width) {
  constexpr int64_t kLeastRows = 8 * kRows, kBlocks = 1024;  // enough to fill a GPU
  const int64_t across = columns_in(width, kWarp * kPack<__nv_bfloat16>);
  const int64_t most = (rows + kLeastRows - 1) / kLeastRows, wanted = (kBlocks + across - 1) / across;
  return most < wanted ? most : wanted;
}

void launch(const ColumnSums& work, Type type, cudaStream_t stream) {
  with_type(type, [&](auto t) { start<decltype(t)>(work, stream); });
}

}  // namespace gyre::cuda
