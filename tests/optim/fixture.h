// What the tests of optimizers share.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gyre/optim/config.h"
#include "gyre/optim/parameter/adam_kernel.h"
#include "gyre/optim/settings/basis_rotation_settings.h"

namespace gyre::testing_support {

inline ParameterSpec matrix(const std::string& name, int64_t rows, int64_t columns, bool rotate,
                            std::vector<int64_t> row_blocks = {}) {
  ParameterSpec spec;
  spec.name = name;
  spec.shape = {rows, columns};
  spec.decay = true;
  spec.rotate = rotate;
  spec.row_blocks = std::move(row_blocks);
  return spec;
}

inline OptimizerConfig config_of(const std::string& kind) {
  OptimizerConfig config;
  config.kind = kind;
  return config;
}

// On the CPU.
inline std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, std::vector<ParameterSpec> specs) {
  return gyre::make_optimizer(config, std::move(specs), at::kCPU);
}

inline std::unique_ptr<Optimizer> make(const std::string& kind, const ParameterSpec& spec,
                                       OptimizerConfig config = {}) {
  config.kind = kind;
  return make_optimizer(config, {spec});
}

// What basis rotation is told.
inline BasisRotationSettings& rotation(OptimizerConfig& config) {
  return config.own.edit<BasisRotationSettings>();
}
inline BasisRotationSettings rotation(const OptimizerConfig& config) {
  return config.own.get<BasisRotationSettings>();
}

inline UpdateContext context_of(int64_t update, double rate, int64_t delay = 0) {
  UpdateContext context;
  context.update = update;
  context.learning_rate = rate;
  context.delay = delay;
  return context;
}

// Adam's, and NAdam's, which has the gradient in the step.
inline std::vector<AdamFactors> adams_and_nadams() {
  const AdamFactors adam = adam_factors(0.9, 0.99, 1e-8, 3);
  AdamFactors nadam = adam;
  nadam.gradient_share = 0.7;
  return {adam, nadam};
}

// The gradient is left alone.
inline void step(Optimizer& optimizer, const at::Tensor& w, const at::Tensor& g, const UpdateContext& context) {
  optimizer.step(std::vector<at::Tensor>{w}, std::vector<at::Tensor>{g.clone()}, context);
}

inline at::Tensor random_orthogonal(int64_t size) {
  return std::get<0>(at::linalg_qr(at::randn({size, size}, at::kDouble))).to(at::kFloat);
}

}  // namespace gyre::testing_support
