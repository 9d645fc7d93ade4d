// The basis of one side of a matrix: eigenvectors of the averaged gradient covariance C, followed as it drifts. All of
// them, or the r largest (a sketch) with the rest of the space left as it is. Or the bases of the same side of several
// matrices of one shape, stacked: all tensors then have one more dimension, the first.
#pragma once

#include <ATen/core/Tensor.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gyre/optim/parameter/rotation_products.h"
#include "gyre/optim/parameter/side_thread.h"
#include "gyre/tensors/device.h"
#include "gyre/tensors/parameter.h"

namespace gyre {

// Which matrix products are made in bf16, of those large enough to be faster so.
struct Bf16Products {
  bool rotation = false;    // of gradients and directions: rotate() and rotate_back()
  bool covariance = false;  // image(): x x^T, or a sketch's x (x^T Y)
  bool iteration = false;   // C Q of orthogonal iteration, and drift()
};

struct RotationBasisOptions {
  int64_t rank = 0;              // 0: the whole space, else the sketch's r
  bool keeps_covariance = true;  // C is averaged here; otherwise prepare() is given an image
  Bf16Products bf16;
  // Longer sides get their first basis by orthogonal iteration from the standard one: a whole decomposition takes
  // minutes there, and LAPACK's in fp32 fails from about 2900 on (it passes the size of its workspace as a float).
  int64_t largest_decomposition = 2048;
};

// Multiply-adds of the parts of a basis' work, for a matrix whose other side is known.
struct RotationCost {
  double rotation = 0;  // rotate() or rotate_back()
  double covariance = 0;
  double refresh = 0;  // one step of orthogonal iteration
};

// What a sketch takes an image of before its first basis.
struct SketchProbe {
  at::Tensor vectors;  // (size, r) orthonormal, random
  DeviceEvent made;    // when they are there
};

// The change of coordinates T along this side: T^T T = 1, so rotate_back(rotate(x)) = x.
//   whole space   T = Q^T                      coordinates = size
//   sketch        T = [Y^T; 1 - Y Y^T]         coordinates = r + size: what the sketch holds, then the rest in its old
//                                              coordinates (a tight frame rather than a basis)
// Before the first basis: T = 1, or [0; 1].
class RotationBasis {
 public:
  // matrices: how many are stacked; of one alone tensors have no dimension for it.
  RotationBasis(int64_t size, const RotationBasisOptions& options, at::Device device, int64_t matrices = 1);

  // Before it is made: how many coordinates it has, and the bytes of what it keeps (a double: no size is too large).
  static int64_t coordinates(int64_t size, const RotationBasisOptions& options);
  static double state_bytes(int64_t size, const RotationBasisOptions& options);
  static RotationCost cost(int64_t size, const RotationBasisOptions& options, int64_t other);

  int64_t coordinates() const { return coordinates(size(), options_); }
  int64_t size() const { return vectors_.size(-2); }
  int64_t directions() const { return vectors_.size(-1); }  // that it holds: size, or r
  bool is_sketch() const { return options_.rank > 0; }
  bool ready() const { return ready_; }
  const at::Tensor& vectors() const { return vectors_; }  // (size, size or r), columns; zeros until ready

  // `side`: the dimension of x that is rotated, 0 (rows: T x) or 1 (columns: x T^T). Results are fp32, or bf16 where
  // the last product was.
  at::Tensor rotate(const at::Tensor& x, int64_t side) const;
  at::Tensor rotate_back(const at::Tensor& y, int64_t side) const;
  // What of y is in old coordinates: a sketch's second part, a view; y itself where the whole space is held.
  at::Tensor rest(const at::Tensor& y, int64_t side) const;

  // What C is averaged from: x x^T (side 0) or x^T x, or its image x (x^T Y) for a sketch (before the first basis that
  // of a fixed random Y).
  at::Tensor image(const at::Tensor& x, int64_t side) const;
  // C <- beta C + (1 - beta) image(x).
  void accumulate(const at::Tensor& x, int64_t side, double beta);
  // Both, of a sketch that is ready: what it holds of x, Y^T x, is the half of an image.
  bool accumulates_as_it_rotates() const { return is_sketch() && ready_; }
  at::Tensor rotate_and_accumulate(const at::Tensor& x, int64_t side, double beta);
  const at::Tensor& covariance() const;  // as image(); undefined if not kept

  // The next basis, from `covariance`: an average of images. Cold start: eigenvectors by falling eigenvalue (sketch:
  // the range of the image). Later one step of orthogonal iteration (basis-rotation paper, as SOAP): with e = diag(Q^T
  // C Q), sort the columns by falling e, then Q <- qr(C Q), signs fixed by a positive diagonal of R, which keeps every
  // column on the side of its predecessor. beside: the thread that makes it, or on a device another stream, until
  // take() asks for it; null: it is made now.
  // Where no covariance is averaged here, a basis from one momentum alone would follow its noise. What the basis knows
  // stands in for the average: C' = beta Q diag(e) Q^T + (1 - beta) `covariance`, with e the eigenvalues found last.
  // wanted: bool, 0-dim or for each of a stack; where it is false the next basis is the one there is. Undefined: true.
  void prepare(const at::Tensor& covariance, double beta, SideThread* beside, const at::Tensor& wanted = {});
  bool has_prepared() const { return next_.valid(); }
  // What became of the coordinates when a prepared basis was taken.
  struct Change {
    bool cold = false;       // there was no basis before
    at::Tensor order;        // (columns) int64: new column i was old column order[i]; undefined if cold
    at::Tensor old_vectors;  // kept on request
  };
  // The prepared basis becomes the basis.
  Change take(bool keep_old_vectors);
  // Second moments along `side` of v after `change`. They follow the reordering of the columns; when it was cold, and
  // where the old vectors were kept, they are carried over as those of a mixture of independent coordinates,
  // (A*A)^T v with A = old^T new. A sketch is reordered alone once it is there.
  at::Tensor carry_variances(const at::Tensor& v, int64_t side, const Change& change) const;

  // How far the basis has drifted from being C's eigenvectors: the share of Q^T C Q's norm that is off its diagonal.
  // 0-dim fp64, or one for each of a stack, on the basis' device.
  at::Tensor drift(const at::Tensor& covariance) const;

  // State by prefix + "_basis", "_covariance" or "_eigenvalues", and "_next_..." while one is prepared. A prefix for
  // each matrix.
  void save(const std::vector<std::string>& prefixes, NamedTensors& state) const;
  void load(const std::vector<std::string>& prefixes, const NamedTensors& state);
  // The vectors that are saved there; undefined where there are none, or none yet.
  static at::Tensor saved_vectors(const std::string& prefix, const NamedTensors& state);

 private:
  // held: what a sketch that is ready holds of x.
  at::Tensor rotate(const at::Tensor& x, int64_t side, at::Tensor& held) const;
  struct Prepared {
    at::Tensor order;        // (columns) int64: new column i was old column order[i]; undefined at the cold start
    at::Tensor vectors;      // (size, columns)
    at::Tensor eigenvalues;  // (columns), about
    DeviceEvent made = {};   // when they are there
  };
  Prepared prepared() const;  // once it is there, for this thread's work
  struct NextBasis {
    at::Tensor covariance, vectors, eigenvalues, probe, wanted;
    double beta;
    bool bf16;  // C Q in bf16
    bool sketch, ready;
    int64_t largest_decomposition;
  };
  static Prepared next_basis(const NextBasis& from);
  // What next_basis() found where it is wanted, and where it is not what there is.
  static Prepared wanted_basis(const NextBasis& from);
  // One step of orthogonal iteration; moved: C Q.
  static Prepared iterated(const at::Tensor& moved, const at::Tensor& vectors, const at::Tensor& size);
  at::Tensor probe() const;  // (size, r)
  void set_vectors(const at::Tensor& vectors);
  const at::Tensor& operand(int64_t other) const;

  std::shared_future<Prepared> made_beside(NextBasis from);

  RotationBasisOptions options_;
  std::optional<c10::Stream> beside_;  // for bases made in the background, on a device
  at::Tensor covariance_;              // (size, size), of which the lower triangle is up to date, or (size, r)
  at::Tensor vectors_, bf16_vectors_;
  at::Tensor eigenvalues_;  // (columns), where no covariance is kept
  // Of a sketch that has no basis yet; made when it is first asked for.
  mutable std::shared_ptr<const SketchProbe> probe_;
  bool ready_ = false;
  std::shared_future<Prepared> next_;
};

}  // namespace gyre
