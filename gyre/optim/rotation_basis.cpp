#include "gyre/optim/rotation_basis.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace gyre {
namespace {

// The orthonormal factor of `matrix` = QR with R's diagonal positive, which makes it unique.
at::Tensor orthonormalised(const at::Tensor& matrix) {
  auto [q, r] = at::linalg_qr(matrix);
  const at::Tensor signs = at::where(r.diagonal() < 0, at::full({}, -1.0, r.options()), at::ones({}, r.options()));
  return q * signs;
}

}  // namespace

RotationBasis::RotationBasis(int64_t size, bool keeps_covariance, at::Device device)
    : vectors_(at::zeros({size, size}, at::TensorOptions().dtype(at::kFloat).device(device))) {
  if (keeps_covariance) covariance_ = at::zeros_like(vectors_);
}

void RotationBasis::accumulate(const at::Tensor& product, double beta) {
  covariance_.mul_(beta).add_(product, 1 - beta);
}

BasisChange RotationBasis::refresh(const at::Tensor& covariance) {
  if (!ready_) {
    // Scaled to a trace of one: gradients may be tiny, and eigenvectors do not depend on scale. A zero matrix gives the
    // standard basis.
    const double trace = covariance.trace().item<double>();
    const at::Tensor scaled = trace > 0 ? covariance / trace : covariance;
    auto [values, vectors] = at::linalg_eigh(scaled);
    vectors_.copy_(vectors.flip({1}));
    ready_ = true;
    return {{}, vectors_};
  }
  const at::Tensor moved = at::mm(covariance, vectors_);
  const at::Tensor rayleigh = (vectors_ * moved).sum(0);
  const at::Tensor order = at::argsort(rayleigh, /*stable=*/true, /*dim=*/0, /*descending=*/true);
  const at::Tensor old = vectors_.index_select(1, order);
  // Columns that C sends to nothing keep their direction: a trace of the old basis is added, far below what C holds.
  const at::Tensor anchor = old * (covariance.trace() * 1e-7 + 1e-30);
  vectors_.copy_(orthonormalised(moved.index_select(1, order) + anchor));
  return {order, at::mm(old.t(), vectors_)};
}

double RotationBasis::drift(const at::Tensor& covariance) const {
  const at::Tensor turned = at::mm(vectors_.t(), at::mm(covariance, vectors_));
  const double all = turned.square().sum().item<double>();
  const double diagonal = turned.diagonal().square().sum().item<double>();
  return all > 0 ? std::sqrt(std::max(0.0, 1 - diagonal / all)) : 0;
}

void RotationBasis::restore() {
  ready_ = vectors_.any().item<bool>();
}

}  // namespace gyre
