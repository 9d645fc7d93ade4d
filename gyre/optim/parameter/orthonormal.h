// Orthonormal columns that span what a matrix' columns span, each on the side of its own: Q of a decomposition QR.
#pragma once

#include <ATen/core/Tensor.h>

namespace gyre {

// To be called before LAPACK: it takes as many threads as OpenMP has, and OpenMP learns ATen's number only when ATen is
// first asked for it.
void settle_number_of_threads();

// `matrix` + `anchor` = QR with R's diagonal positive, which makes Q unique; and that diagonal.
struct Orthonormalised {
  at::Tensor q, scales;  // (..., rows, columns), (..., columns)
};
// matrix, anchor: (..., rows, columns), fp32, rows >= columns. anchor: orthogonal columns, all of one length, far
// shorter than what matters in `matrix`; they give columns of `matrix` that are nothing, or nothing new, a direction.
// Chooses by the device: Householder's reflections need a few small steps for every 32 columns, so a GPU mostly waits.
Orthonormalised orthonormalised(const at::Tensor& matrix, const at::Tensor& anchor);

// By Householder's reflections, as LAPACK has them.
Orthonormalised by_reflections(const at::Tensor& matrix);
// By Cholesky's decomposition of the products of columns, in fp64, three times, the first one shifted ("shifted
// CholeskyQR3": Fukaya, Kannan, Nakatsukasa, Yamamoto and Yanagisawa, 2020). All of it is large products, of many
// matrices at once. The columns are scaled to one length first. Columns that depend on each other by less than about
// 1e-15 are too much for it: that matrix' Q then is `anchor`, scaled. No value is read on the host.
Orthonormalised by_cholesky(const at::Tensor& matrix, const at::Tensor& anchor);

}  // namespace gyre
