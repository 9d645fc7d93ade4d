#include "gyre/optim/parameter/orthonormal.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <limits>

namespace gyre {
namespace {

constexpr int kSteps = 3;

// (..., columns): the length of each column.
at::Tensor lengths(const at::Tensor& matrix) {
  return at::linalg_vector_norm(matrix, 2, at::IntArrayRef{-2});
}

// 11 (m n + n (n + 1)) u |A|^2, with A's columns of length 1, so |A|^2 <= n: from section 3 of the paper. It makes the
// first decomposition succeed.
double first_shift(int64_t rows, int64_t columns) {
  const auto m = static_cast<double>(rows), n = static_cast<double>(columns);
  return 11 * (m * n + n * (n + 1)) * (std::numeric_limits<double>::epsilon() / 2) * n;
}

// L of Q^T Q + shift = L L^T.
at::Tensor lower_factor(const at::Tensor& q, double shift) {
  const at::Tensor products = at::matmul(q.mT(), q);
  if (shift > 0) products.diagonal(0, -2, -1).add_(shift);
  return std::get<0>(at::linalg_cholesky_ex(products));
}

}  // namespace

void settle_number_of_threads() {
  at::get_num_threads();
}

Orthonormalised by_reflections(const at::Tensor& matrix) {
  settle_number_of_threads();
  auto [q, r] = at::linalg_qr(matrix);
  const at::Tensor diagonal = r.diagonal(0, -2, -1);
  const at::Tensor signs = (diagonal < 0).to(r.scalar_type()).mul_(-2).add_(1);
  return {q * signs.unsqueeze(-2), diagonal * signs};
}

Orthonormalised by_cholesky(const at::Tensor& matrix, const at::Tensor& anchor) {
  at::Tensor q = matrix.to(at::kDouble).add_(anchor);
  // R is the product of the triangular factors, so its diagonal is that of theirs.
  at::Tensor scales = lengths(q);
  q.div_(scales.unsqueeze(-2));
  for (int step = 0; step < kSteps; ++step) {
    const at::Tensor lower = lower_factor(q, step == 0 ? first_shift(q.size(-2), q.size(-1)) : 0);
    q = at::linalg_solve_triangular(lower.mT(), q, /*upper=*/true, /*left=*/false);
    scales = scales * lower.diagonal(0, -2, -1);
  }
  // What failed is no number, in all that it is divided by.
  const at::Tensor sound = scales.isfinite().all(-1, /*keepdim=*/true);
  const at::Tensor instead = anchor / lengths(anchor).unsqueeze(-2);
  return {at::where(sound.unsqueeze(-1), q.to(at::kFloat), instead),
          at::where(sound, scales.to(at::kFloat), lengths(matrix))};
}

Orthonormalised orthonormalised(const at::Tensor& matrix, const at::Tensor& anchor) {
  return matrix.is_cuda() ? by_cholesky(matrix, anchor) : by_reflections(matrix + anchor);
}

}  // namespace gyre
