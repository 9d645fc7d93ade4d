// Basis rotation (optim/parameter/basis_rotation.h) of a stage's matrices, and AdamW of its other parameters.
#pragma once

#include <vector>

#include "gyre/optim/config.h"
#include "gyre/optim/optimizer.h"
#include "gyre/optim/parameter/adam_moments.h"
#include "gyre/optim/parameter/basis_rotation.h"
#include "gyre/optim/parameter/side_thread.h"

namespace gyre {

class RotatingOptimizer final : public Optimizer {
 public:
  RotatingOptimizer(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs, at::Device device);
  // From the next step on, for programs that change these as they go. The moments' type stays as it was.
  void set(const AdamSettings& settings);
  // Where the context has no thread for refreshes, the optimizer has one.
  void step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
            const UpdateContext& context) override;
  void step_split(std::span<const SplitWeight> weights, std::span<const at::Tensor> gradients,
                  const UpdateContext& context) override;
  NamedTensors state() const override;
  void load_state(const NamedTensors& state) override;

  // Of one parameter, as an OptimizerMaker has them.
  static double state_bytes(const OptimizerConfig& config, const ParameterSpec& spec);
  static double update_cost(const OptimizerConfig& config, const ParameterSpec& spec);
  static PassingBytes passing_bytes(const OptimizerConfig& config, const ParameterSpec& spec);
  static StepBytes step_bytes(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs,
                              const StepSetting& setting);

 private:
  struct Other {
    size_t parameter;  // its place among the specs
    AdamMoments moments;
  };
  struct Place {
    size_t parameter;
    MatrixBlock block;
  };
  // Matrices that are treated together, and the blocks of parameters that they are.
  struct Together {
    std::vector<Place> places;
    RotatedMatrices matrices;
  };
  // Matrices that can be treated together.
  struct Alike {
    int64_t rows, columns;
    bool decay;
    std::vector<Place> places;
  };
  // In the order in which the first of each kind comes.
  static std::vector<Alike> kinds_of(const std::vector<ParameterSpec>& specs);
  template <typename Weight>
  void step_matrices(std::span<const Weight> weights, std::span<const at::Tensor> gradients,
                     const UpdateContext& context);

  RotationConfig config_;
  std::vector<Other> others_;
  std::vector<Together> matrices_;
  SideThread beside_;
};

}  // namespace gyre
