// Muon (Jordan, 2024): the momentum of every rotatable matrix is made orthogonal by five Newton-Schulz steps; AdamW for
// the rest. Matrices learn at lr times `matrix_lr_ratio`.
#pragma once

#include <string>
#include <vector>

#include "gyre/optim/parameter/passing_bytes.h"
#include "gyre/optim/parameter/update_context.h"
#include "gyre/optim/settings/muon_settings.h"
#include "gyre/optim/settings/optimizer_kind.h"
#include "gyre/tensors/matrix_block.h"

namespace gyre {

struct MuonConfig : AdamSettings, MuonSettings {};

// The matrices of one parameter (optim/parameter/matrix_parameter.h): one momentum of its shape.
//   M <- b M + (1-b) G;  X = (1-b) G + b M, each matrix of it made orthogonal
//   W <- W - lr ratio sqrt(max(1, rows / columns)) X
class MuonMatrices {
 public:
  using Settings = MuonSettings;
  using Config = MuonConfig;

  MuonMatrices(const MuonConfig& config, const ParameterSpec& spec, std::vector<MatrixBlock> blocks, at::Device device);
  void step(const MuonConfig& config, const at::Tensor& weight, const at::Tensor& gradient,
            const UpdateContext& context);
  void save(NamedTensors& state) const;
  void load(const NamedTensors& state);
  static double state_bytes(const MuonConfig& config, const ParameterSpec& spec,
                            const std::vector<MatrixBlock>& blocks);
  static double update_cost(const MuonConfig& config, const std::vector<MatrixBlock>& blocks);
  static StepBytes step_bytes(const MuonConfig& config, const ParameterSpec& spec,
                              const std::vector<MatrixBlock>& blocks, bool in_halves);

 private:
  std::string name_;
  bool decay_;
  std::vector<MatrixBlock> blocks_;
  at::Tensor momentum_;
};

}  // namespace gyre
