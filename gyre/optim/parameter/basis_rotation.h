// Basis rotation (arXiv 2602.03515): Adam in the eigenbasis of the gradient's covariances, where stale gradients do
// little harm. Source second | first, geometry bilateral | unilateral, refresh fixed | stage-aware | adaptive.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gyre/optim/parameter/passing_bytes.h"
#include "gyre/optim/parameter/rotation_basis.h"
#include "gyre/optim/parameter/split_weight.h"
#include "gyre/optim/parameter/update_context.h"
#include "gyre/optim/settings/basis_rotation_settings.h"
#include "gyre/optim/settings/optimizer_kind.h"
#include "gyre/tensors/matrix_block.h"

namespace gyre {

struct RotationConfig : AdamSettings, BasisRotationSettings {};

// One matrix W (m, n) and its gradient G:
//   L <- bc L + (1-bc) G G^T;  R <- bc R + (1-bc) G^T G        bc: covariance_beta, or b2
//   at a refresh: U, V from L, R, and the moments move to the new coordinates
//   Gt = U^T G V;  Adam's moments and direction Dt in these coordinates;  W <- W - lr wd W - lr U Dt V^T
// With source "first" there are no L, R: U, V come from M M^T and M^T M of the momentum M, averaged into what the bases
// and their eigenvalues say.
//
// Sides. A side that is not rotated has the identity: the longer one of "unilateral". Of some sides r directions are
// rotated and the rest is left as it is (a sketch): those longer than max_dimension, with r = `sketch` (0: the
// identity), and, unless `long_sides` says "whole", those at least twice as long as the other side. There r is the
// length of the other side, which is all that one gradient spans.
//
// Moments. The first moment stays in rotated coordinates and moves at a refresh, which is exact but for the rounding of
// products, and saves one projection a step. The second moment cannot be rotated exactly: at a refresh it follows the
// reordering of the columns. Until the first refresh, at update `interval`, the basis is the identity (plain AdamW): a
// basis from a single gradient would be arbitrary. At that refresh the second moment is carried over as that of a
// mixture of independent coordinates; `transport` does so at every refresh.
//
// Refresh, with f = `interval`:
//   "fixed"        every f updates
//   "stage-aware"  every f * (mean delay of all stages) / (the stage's own): the same budget, spent where delays are
//                  long (paper, section 4.3: PipeDream's delays are P-1-k, their mean (P-1) / 2)
//   "adaptive"     looks every f updates, and refreshes if the drift has passed a threshold, which saves the
//                  decomposition while the basis holds
// With `refresh_lag` = l the decompositions run on one thread beside the worker (on a device: on streams) while l more
// updates are made, and the bases change then.
//
// Covariances. With `covariance_every` = k, `interval` at most, only every k-th gradient goes into L and R, with bc^k
// in the place of bc. A sketch adds a gradient to its covariance while it rotates that gradient, since both need the
// same product. That is after the refresh of the same update, which so does not know the gradient yet.
//
// With `look_ahead` = f the weights stand where they will be when the next gradient, d updates late, arrives, if the
// last step is repeated until then: ahead of the optimizer's own by -d lr U (mask Dt) V^T. Prediction helps along
// directions of little curvature, where steps repeat themselves, and harms along the others, where they oscillate; so
// the mask keeps a share f of each side's directions, those with the least eigenvalues. What is evaluated and saved
// are these weights.
//
// Stacks. On the CPU a matrix is treated alone. A device would wait for the thread that hands it the small kernels of
// one matrix after another. So there several matrices of one shape are stacked, (matrices, rows, columns), and each
// kernel treats all of them.
class RotatedMatrices {
 public:
  // One name: a single matrix, whose tensors have no dimension for matrices.
  RotatedMatrices(const RotationConfig& config, std::vector<std::string> names, int64_t rows, int64_t columns,
                  bool decay, at::Device device);
  // How many matrices of this shape are best stacked there, at most.
  static int64_t most_in_a_stack(int64_t rows, int64_t columns, at::Device device);
  // weights, gradients: one of each matrix, (rows, columns).
  void step(const RotationConfig& config, const std::vector<at::Tensor>& weights,
            const std::vector<at::Tensor>& gradients, const UpdateContext& context);
  // The same of weights in halves.
  void step(const RotationConfig& config, const std::vector<SplitWeight>& weights,
            const std::vector<at::Tensor>& gradients, const UpdateContext& context);
  void save(NamedTensors& state) const;
  void load(const NamedTensors& state);
  // Of one matrix.
  static double state_bytes(const RotationConfig& config, const MatrixBlock& block);
  static double update_cost(const RotationConfig& config, const MatrixBlock& block);
  static PassingBytes passing_bytes(const RotationConfig& config, const MatrixBlock& block);
  // Held only during a step on the CPU.
  static double step_bytes(const RotationConfig& config, const MatrixBlock& block, bool in_halves);

 private:
  bool stacked() const { return names_.size() > 1; }
  // Of a single matrix, or of the whole stack.
  void step_all(const RotationConfig& config, const at::Tensor& weight, const at::Tensor& gradient,
                const UpdateContext& context);
  // All of a step but for looking ahead. Returns the direction in rotated coordinates; undefined: plain AdamW's step.
  template <typename Weight>
  at::Tensor step_from_here(const RotationConfig& config, const Weight& weight, const at::Tensor& gradient,
                            const UpdateContext& context);
  // The names of states that belong to a side.
  std::vector<std::string> prefixes(const char* side) const;
  // By which the covariances average in this update; none: its gradient is not one that they take in.
  std::optional<double> averaging_beta(const RotationConfig& config, int64_t update) const;
  // Returns whether it is left to rotate(): a sketch accumulates there.
  static bool accumulate(std::optional<RotationBasis>& basis, const at::Tensor& gradient, int64_t side,
                         std::optional<double> beta);
  void refresh_if_due(const at::Tensor& gradient, const RotationConfig& config, const UpdateContext& context);
  int64_t refresh_interval(const RotationConfig& config, const UpdateContext& context) const;
  // Whether the coordinates are still the matrix's own, plain AdamW's.
  bool untouched() const;
  // The part of moments that is in the matrix's own coordinates, all of them while it is untouched: a view.
  at::Tensor own_coordinates(const at::Tensor& moments) const;
  // `direction` (rotated coordinates) with the directions that are not looked ahead along set to 0; changes it in
  // place.
  at::Tensor of_little_curvature(const at::Tensor& direction, double share) const;
  // The beta of each side whose covariance takes x in while x is rotated; none: it does not.
  struct AccumulationBetas {
    std::optional<double> left, right;
  };
  // T_left x T_right^T, and back.
  at::Tensor rotate(const at::Tensor& x, const AccumulationBetas& betas);
  at::Tensor rotate_back(const at::Tensor& x) const;

  // What the sides' bases are made of: L and R, or M M^T and M^T M.
  struct Covariances {
    at::Tensor left, right;
  };
  Covariances covariances(const at::Tensor& gradient, const RotationConfig& config) const;
  // bool, 0-dim or for each of a stack, on the matrix' device: whether either basis has.
  at::Tensor has_drifted(const Covariances& covariances, const RotationConfig& config) const;
  void prepare(const Covariances& covariances, double beta, SideThread* beside, const at::Tensor& wanted);
  void take(const RotationConfig& config);

  std::vector<std::string> names_;
  bool decay_;
  bool keeps_covariance_;
  Bf16Products bf16_;
  std::optional<RotationBasis> left_, right_;  // none: the identity
  at::Tensor exp_avg_, exp_avg_sq_;            // (left coordinates, right coordinates)
  at::Tensor ahead_;                           // (rows, columns): what the weights are ahead by; none: never
};

// Which bases an optimizer's state has for a matrix (MatrixBlock::name), whatever the optimizer.
struct SavedBases {
  at::Tensor left, right;  // (rows, directions), (columns, directions); undefined: none, or none yet
};
SavedBases saved_bases(const NamedTensors& state, const std::string& matrix);

}  // namespace gyre
