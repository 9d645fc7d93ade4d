// Starts the kernels, on raw memory: what CUDA's compiler and the C++ compiler share, without libtorch's headers. All
// memory is the device's. Errors are left to cudaGetLastError.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "gyre/model/settings/activation.h"

namespace gyre::cuda {

enum class Type { Float, BFloat16 };

// logits: (rows, width), contiguous. losses: (rows).
struct CrossEntropy {
  void* logits = nullptr;
  const int64_t* targets = nullptr;
  double* losses = nullptr;
  int64_t rows = 0, width = 0;
  float weight = 1;
};
void launch(const CrossEntropy& work, Type type, cudaStream_t stream);

// mask: `count` elements, contiguous.
struct DropoutMask {
  bool* mask = nullptr;
  int64_t count = 0;
  std::array<uint32_t, 4> counter{};  // of the stream's first block
  std::array<uint32_t, 2> key{};
  uint32_t threshold = 0;  // words below it drop their element
};
void launch(const DropoutMask& work, cudaStream_t stream);

// All `count` elements, contiguous; weight may be null (see kernels/adam.h). inverse1: 1 / correction1; inverse_root2:
// 1 / sqrt(correction2); rest: 1 - beta.
struct Adam {
  float *weight = nullptr, *gradient = nullptr;
  void *exp_avg = nullptr, *exp_avg_sq = nullptr;
  int64_t count = 0;
  float beta1 = 0, rest1 = 0, beta2 = 0, rest2 = 0, inverse1 = 1, inverse_root2 = 1, epsilon = 0, gradient_share = 0;
  float rate = 0, keep = 1, factor = 1;
  uint32_t update = 0;
};
void launch(const Adam& work, Type moments, cudaStream_t stream);

// x: (batch, heads, positions, 2 half), a view whose rows are contiguous. cos, sin: (positions, half), contiguous.
struct Rotation {
  void* x = nullptr;
  const float *cos = nullptr, *sin = nullptr;
  float direction = 1;
  int64_t batch = 0, heads = 0, positions = 0, half = 0;
  int64_t sequence_stride = 0, head_stride = 0, position_stride = 0;
};
void launch(const Rotation& work, Type type, cudaStream_t stream);

// Forward without `grad`, else backward, which writes both. All contiguous.
//   plain  x, grad, y, grad_x: (rows, n)
//   gated  x, grad_x: (rows, 2 n); grad, y: (rows, n)
struct Activated {
  const void *x = nullptr, *grad = nullptr;
  void *y = nullptr, *grad_x = nullptr;
  int64_t rows = 0, n = 0;
  bool gated = false;
};
void launch(const Activated& work, Activation activation, Type type, cudaStream_t stream);

// Layer norm, or without `mean` RMSNorm, of rows: y = (x - mean) rstd weight + bias. x, y: (rows, width); weight, bias:
// (width), bias may be null; mean, rstd: (rows), written unless has_statistics. All contiguous.
struct NormForward {
  const void *x = nullptr, *weight = nullptr, *bias = nullptr;
  void* y = nullptr;
  float *mean = nullptr, *rstd = nullptr;
  int64_t rows = 0, width = 0;
  float epsilon = 0;
  bool has_statistics = false;
};
void launch(const NormForward& work, Type type, cudaStream_t stream);

// Its gradient with respect to x; those of weight and bias are column sums.
struct NormBackward {
  const void *grad = nullptr, *x = nullptr, *weight = nullptr;
  void* grad_x = nullptr;
  const float *mean = nullptr, *rstd = nullptr;
  int64_t rows = 0, width = 0;
};
void launch(const NormBackward& work, Type type, cudaStream_t stream);

// plain (width) = the sums of grad's columns; with x, normed (width) = those of grad (x - mean) rstd. Or adds to them.
// grad, x: (rows, width), contiguous. plain may be null if there is an x. mean may be null. pieces: scratch, (1 or with
// x 2, count_pieces, width), with the count that column_sum_pieces gives.
struct ColumnSums {
  const void *grad = nullptr, *x = nullptr;
  const float *mean = nullptr, *rstd = nullptr;
  float *plain = nullptr, *normed = nullptr, *pieces = nullptr;
  int64_t rows = 0, width = 0, count_pieces = 0;
  bool adds = false;
};
void launch(const ColumnSums& work, Type type, cudaStream_t stream);
int64_t column_sum_pieces(int64_t rows, int64_t width);

}  // namespace gyre::cuda
