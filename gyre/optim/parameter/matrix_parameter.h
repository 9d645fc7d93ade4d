// One parameter of an optimizer that treats matrices in a way of its own. The rule that all of them share: a matrix,
// or the matrices that a fused one stacks, keeps what that optimizer says; everything else keeps Adam's moments.
#pragma once

#include <utility>
#include <variant>
#include <vector>

#include "gyre/optim/parameter/adam_moments.h"
#include "gyre/optim/parameter/passing_bytes.h"
#include "gyre/optim/parameter/split_weight.h"
#include "gyre/tensors/matrix_block.h"

namespace gyre {

// Matrices: what is kept for one parameter's matrices, `blocks` of them. It has
//   Settings, the optimizer's own table, and Config, these and Adam's
//   Matrices(const Config&, const ParameterSpec&, std::vector<MatrixBlock> blocks, at::Device)
//   step, save and load as AdamMoments, with Config in the place of Adam's settings; the step on a weight in halves if
//   it saves a pass
//   static double state_bytes(const Config&, const ParameterSpec&, const std::vector<MatrixBlock>& blocks)
//   static double update_cost(const Config&, const std::vector<MatrixBlock>& blocks)
//   static StepBytes step_bytes(const Config&, const ParameterSpec&, const std::vector<MatrixBlock>&, bool in_halves)
template <typename Matrices>
class MatrixParameter {
 public:
  using Settings = typename Matrices::Settings;
  using Config = typename Matrices::Config;

  MatrixParameter(const Config& config, const ParameterSpec& spec, at::Device device)
      : kept_(made(config, spec, device)) {}
  void step(const Config& config, const at::Tensor& weight, const at::Tensor& gradient, const UpdateContext& context) {
    std::visit([&](auto& kept) { kept.step(config, weight, gradient, context); }, kept_);
  }
  void step(const Config& config, const SplitWeight& weight, const at::Tensor& gradient, const UpdateContext& context) {
    std::visit([&](auto& kept) { step_on(weight, kept, config, gradient, context); }, kept_);
  }
  bool step_together(const Config& config, const at::Tensor& weight, const at::Tensor& gradient, FusedAdamw& together) {
    const auto* moments = std::get_if<AdamMoments>(&kept_);
    return moments != nullptr && moments->step_together(config, weight, gradient, together);
  }
  void save(NamedTensors& state) const {
    std::visit([&](const auto& kept) { kept.save(state); }, kept_);
  }
  void load(const NamedTensors& state) {
    std::visit([&](auto& kept) { kept.load(state); }, kept_);
  }
  static double state_bytes(const Config& config, const ParameterSpec& spec) {
    const std::vector<MatrixBlock> blocks = matrix_blocks(spec);
    return blocks.empty() ? AdamMoments::state_bytes(config, spec) : Matrices::state_bytes(config, spec, blocks);
  }
  static double update_cost(const Config& config, const ParameterSpec& spec) {
    return Matrices::update_cost(config, matrix_blocks(spec));
  }
  static StepBytes step_bytes(const Config& config, const ParameterSpec& spec, bool in_halves) {
    const std::vector<MatrixBlock> blocks = matrix_blocks(spec);
    return blocks.empty() ? StepBytes() : Matrices::step_bytes(config, spec, blocks, in_halves);
  }

 private:
  using Kept = std::variant<AdamMoments, Matrices>;
  static Kept made(const Config& config, const ParameterSpec& spec, at::Device device) {
    std::vector<MatrixBlock> blocks = matrix_blocks(spec);
    if (blocks.empty()) return AdamMoments(config, spec, device);
    return Matrices(config, spec, std::move(blocks), device);
  }

  Kept kept_;
};

}  // namespace gyre
