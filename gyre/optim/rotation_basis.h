// The basis of one side of a matrix: eigenvectors of the averaged gradient covariance, followed as it drifts.
#pragma once

#include <ATen/core/Tensor.h>

namespace gyre {

// What a refresh did to coordinates along this side: first the columns were reordered, then turned a little.
struct BasisChange {
  at::Tensor order;     // (size) int64: new column i was old column order[i]; undefined at the cold start
  at::Tensor rotation;  // (size, size): (old basis, reordered)^T new basis; at the cold start the new basis itself
};

class RotationBasis {
 public:
  // keeps_covariance: C is averaged here; otherwise refresh() is given one.
  explicit RotationBasis(int64_t size, bool keeps_covariance = true, at::Device device = at::kCPU);

  // C <- beta C + (1 - beta) product, product = G G^T (left) or G^T G (right); fp32.
  void accumulate(const at::Tensor& product, double beta);

  // Cold start: eigenvectors of C, by falling eigenvalue. Later: one step of orthogonal iteration (basis-rotation
  // paper, as SOAP): with e = diag(Q^T C Q), sort the columns by falling e, then Q <- qr(C Q). Signs are fixed by a
  // positive diagonal of R, which keeps every column on the side of its predecessor.
  BasisChange refresh() { return refresh(covariance_); }
  BasisChange refresh(const at::Tensor& covariance);
  // How far the basis has drifted from being C's eigenvectors: the share of Q^T C Q's norm that is off its diagonal.
  double drift(const at::Tensor& covariance) const;

  bool ready() const { return ready_; }
  const at::Tensor& vectors() const { return vectors_; }        // (size, size), columns; meaningful when ready
  const at::Tensor& covariance() const { return covariance_; }  // (size, size); undefined if not kept
  // After the tensors above have been loaded: a basis of zeros means that there was none yet.
  void restore();

 private:
  at::Tensor covariance_;
  at::Tensor vectors_;
  bool ready_ = false;
};

}  // namespace gyre
