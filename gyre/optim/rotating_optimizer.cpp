#include "gyre/optim/rotating_optimizer.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "gyre/optim/parameter/fused_adamw.h"

namespace gyre {
namespace {

RotationConfig rotation_config(const OptimizerConfig& config) {
  return {config, config.own.get<BasisRotationSettings>()};
}

at::Tensor block_of(const MatrixBlock& block, const at::Tensor& parameter) {
  return block.of(parameter);
}

UpdateContext with(SideThread& beside, UpdateContext context) {
  context.beside = &beside;
  return context;
}

}  // namespace

RotatingOptimizer::RotatingOptimizer(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs,
                                     at::Device device)
    : config_(rotation_config(config)) {
  // Matrices that are treated alike, in the order in which the first of each kind comes.
  struct Alike {
    std::tuple<int64_t, int64_t, bool> kind;  // rows, columns, whether weights decay
    std::vector<Together::Place> places;
  };
  std::vector<Alike> kinds;
  for (size_t i = 0; i < specs.size(); ++i) {
    const std::vector<MatrixBlock> blocks = matrix_blocks(specs[i]);
    if (blocks.empty()) others_.push_back({i, AdamMoments(config_, specs[i], device)});
    for (const MatrixBlock& block : blocks) {
      const std::tuple kind(block.rows, block.columns, specs[i].decay);
      auto alike = std::find_if(kinds.begin(), kinds.end(), [&](const Alike& a) { return a.kind == kind; });
      if (alike == kinds.end()) alike = kinds.insert(kinds.end(), {kind, {}});
      alike->places.push_back({i, block});
    }
  }
  for (const Alike& alike : kinds) {
    const auto [rows, columns, decay] = alike.kind;
    const size_t count = alike.places.size();
    const auto most = static_cast<size_t>(RotatedMatrices::most_in_a_stack(rows, columns, device));
    const size_t stacks = (count + most - 1) / most;
    for (size_t s = 0; s < stacks; ++s) {  // of about as many each
      const auto from = [&](size_t stack) {
        return alike.places.begin() + static_cast<std::ptrdiff_t>(stack * count / stacks);
      };
      std::vector<Together::Place> places(from(s), from(s + 1));
      std::vector<std::string> names;
      for (const Together::Place& place : places) names.push_back(place.block.name);
      RotatedMatrices matrices(config_, std::move(names), rows, columns, decay, device);
      matrices_.push_back({std::move(places), std::move(matrices)});
    }
  }
}

void RotatingOptimizer::step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
                             const UpdateContext& given) {
  const UpdateContext context = with(beside_, given);
  FusedAdamw together;
  for (Other& other : others_) {
    const at::Tensor &weight = weights[other.parameter], &gradient = gradients[other.parameter];
    if (!other.moments.step_together(config_, weight, gradient, together)) {
      other.moments.step(config_, weight, gradient, context);
    }
  }
  step_matrices(weights, gradients, context);
  together.make(config_, context);
}

void RotatingOptimizer::step_split(std::span<const SplitWeight> weights, std::span<const at::Tensor> gradients,
                                   const UpdateContext& given) {
  const UpdateContext context = with(beside_, given);
  for (Other& other : others_) {
    other.moments.step(config_, weights[other.parameter], gradients[other.parameter], context);
  }
  step_matrices(weights, gradients, context);
}

template <typename Weight>
void RotatingOptimizer::step_matrices(std::span<const Weight> weights, std::span<const at::Tensor> gradients,
                                      const UpdateContext& context) {
  for (Together& together : matrices_) {
    std::vector<Weight> own;
    std::vector<at::Tensor> own_gradients;
    for (const auto& [parameter, block] : together.places) {
      own.push_back(block_of(block, weights[parameter]));
      own_gradients.push_back(block.of(gradients[parameter]));
    }
    together.matrices.step(config_, own, own_gradients, context);
  }
}

NamedTensors RotatingOptimizer::state() const {
  NamedTensors state;
  for (const Other& other : others_) other.moments.save(state);
  for (const Together& together : matrices_) together.matrices.save(state);
  return state;
}

void RotatingOptimizer::load_state(const NamedTensors& state) {
  for (Other& other : others_) other.moments.load(state);
  for (Together& together : matrices_) together.matrices.load(state);
}

double RotatingOptimizer::state_bytes(const OptimizerConfig& config, const ParameterSpec& spec) {
  const RotationConfig rotation = rotation_config(config);
  const std::vector<MatrixBlock> blocks = matrix_blocks(spec);
  if (blocks.empty()) return AdamMoments::state_bytes(rotation, spec);
  double bytes = 0;
  for (const MatrixBlock& block : blocks) bytes += RotatedMatrices::state_bytes(rotation, block);
  return bytes;
}

double RotatingOptimizer::update_cost(const OptimizerConfig& config, const ParameterSpec& spec) {
  const RotationConfig rotation = rotation_config(config);
  double cost = 0;
  for (const MatrixBlock& block : matrix_blocks(spec)) cost += RotatedMatrices::update_cost(rotation, block);
  return cost;
}

PassingBytes RotatingOptimizer::passing_bytes(const OptimizerConfig& config, const ParameterSpec& spec) {
  const RotationConfig rotation = rotation_config(config);
  PassingBytes bytes;
  for (const MatrixBlock& block : matrix_blocks(spec)) bytes += RotatedMatrices::passing_bytes(rotation, block);
  return bytes;
}

}  // namespace gyre
