// Basis rotation (arXiv 2602.03515): Adam in the eigenbasis of the gradient's covariances, where stale gradients do
// little harm. Source second | first, geometry bilateral | unilateral, refresh fixed | stage-aware | adaptive.
#pragma once

#include <optional>
#include <string>
#include <vector>

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
//   at a refresh: U, V from L, R (source "first": from M M^T and M^T M of the momentum M, averaged into what the bases
//   and their eigenvalues say; no L, R kept), and the moments move to the new coordinates. A side that is not rotated
//   has the identity: the longer one of "unilateral", and sides longer than max_dimension; with `sketch` = r these have
//   r directions rotated and the rest left as it is. So has a side at least twice as long as the other, with as many
//   directions as the other has, which is all that one gradient spans; unless `long_sides` says "whole".
//   Gt = U^T G V;  Adam's moments and direction Dt in these coordinates;  W <- W - lr wd W - lr U Dt V^T
// The first moment is kept in rotated coordinates and moved at a refresh, which is exact, and one projection a step
// less than projecting it anew. The second moment cannot be turned exactly: at a refresh it follows the reordering of
// the columns. Until the first refresh, at update `interval`, the basis is the identity (plain AdamW): a basis from a
// single gradient would be arbitrary. There the second moment is carried over as that of a mixture of independent
// coordinates; `transport` does so at every refresh.
//
// Refresh policies: "fixed" every f updates; "stage-aware" every f * (mean delay of all stages) / (the stage's
// own), the same budget spent where delays are long (paper, section 4.3: PipeDream's delays are P-1-k, their mean
// (P-1) / 2); "adaptive" looks every f updates and refreshes when
// the drift has passed a threshold, which saves the decomposition while the basis holds. With `refresh_lag` = l the
// decomposition runs on a thread of its own while l more updates are made, and the basis changes then.
// `covariance_every` = k takes every k-th gradient into L and R, with bc^k; `interval` is the most. A sketch's
// covariance takes it in while it is turned, which saves half of the products, so that a refresh in the same update
// does not know it yet.
//
// With `look_ahead` = f the weights stand where they will be when the next gradient, d updates late, arrives, if the
// last step is repeated until then: ahead of the optimizer's own by -d lr U (mask Dt) V^T. Prediction helps along
// directions of little curvature, where steps repeat themselves, and harms along the others, where they oscillate; so
// the mask keeps a share f of each side's directions, those with the least eigenvalues.
class RotatedMatrix {
 public:
  RotatedMatrix(const RotationConfig& config, std::string name, int64_t rows, int64_t columns, bool decay,
                at::Device device);
  void step(const RotationConfig& config, const at::Tensor& weight, const at::Tensor& gradient,
            const UpdateContext& context);
  // The same of a weight in halves.
  void step(const RotationConfig& config, const SplitWeight& weight, const at::Tensor& gradient,
            const UpdateContext& context);
  void save(NamedTensors& state) const;
  void load(const NamedTensors& state);
  static double state_bytes(const RotationConfig& config, int64_t rows, int64_t columns);
  static double update_cost(const RotationConfig& config, int64_t rows, int64_t columns);

 private:
  // All of a step but for looking ahead. Returns the direction in rotated coordinates; undefined: plain AdamW's step.
  template <typename Weight>
  at::Tensor step_from_here(const RotationConfig& config, const Weight& weight, const at::Tensor& gradient,
                            const UpdateContext& context);
  // What the covariances keep of themselves in this update; none: its gradient is not one that they take in.
  std::optional<double> beta_of(const RotationConfig& config, int64_t update) const;
  // Whether it is left to the turning of the gradient.
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
  // The sketches whose covariances take x in while it is turned, and what these keep.
  struct LaterAccumulation {
    std::optional<double> left, right;
  };
  // T_left x T_right^T, and back.
  at::Tensor to_rotated(const at::Tensor& x, const LaterAccumulation& later);
  at::Tensor from_rotated(const at::Tensor& x) const;

  // What the sides' bases are made of: L and R, or M M^T and M^T M.
  struct Covariances {
    at::Tensor left, right;
  };
  Covariances covariances(const at::Tensor& gradient, const RotationConfig& config) const;
  // 0-dim bool, on the matrix' device: whether either basis has.
  at::Tensor has_drifted(const Covariances& of, const RotationConfig& config) const;
  void prepare(const Covariances& of, double kept, bool in_background, const at::Tensor& wanted);
  void take(const RotationConfig& config);

  std::string name_;
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

// The matrices of one parameter (optim/parameter/matrix_parameter.h).
class RotatedMatrices {
 public:
  using Settings = BasisRotationSettings;
  using Config = RotationConfig;

  RotatedMatrices(const RotationConfig& config, const ParameterSpec& spec, std::vector<MatrixBlock> blocks,
                  at::Device device);
  void step(const RotationConfig& config, const at::Tensor& weight, const at::Tensor& gradient,
            const UpdateContext& context);
  void step(const RotationConfig& config, const SplitWeight& weight, const at::Tensor& gradient,
            const UpdateContext& context);
  void save(NamedTensors& state) const;
  void load(const NamedTensors& state);
  static double state_bytes(const RotationConfig& config, const ParameterSpec& spec,
                            const std::vector<MatrixBlock>& blocks);
  static double update_cost(const RotationConfig& config, const std::vector<MatrixBlock>& blocks);

 private:
  std::vector<MatrixBlock> blocks_;
  std::vector<RotatedMatrix> rotated_;  // [block]
};

}  // namespace gyre
