#include "gyre/optim/rotating_optimizer.h"

#include <algorithm>
#include <string>
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

// Into how many stacks, of about as many each, `count` matrices are divided.
size_t stacks_of(size_t count, int64_t rows, int64_t columns, at::Device device) {
  const auto most = static_cast<size_t>(RotatedMatrices::most_in_a_stack(rows, columns, device));
  return (count + most - 1) / most;
}

UpdateContext with(SideThread& beside, UpdateContext context) {
  if (context.beside == nullptr) context.beside = &beside;
  return context;
}

}  // namespace

RotatingOptimizer::RotatingOptimizer(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs,
                                     at::Device device)
    : config_(rotation_config(config)) {
  for (size_t i = 0; i < specs.size(); ++i) {
    if (matrix_blocks(specs[i]).empty()) others_.push_back({i, AdamMoments(config_, specs[i], device)});
  }
  for (const Alike& alike : kinds_of(specs)) {
    const size_t count = alike.places.size();
    const size_t stacks = stacks_of(count, alike.rows, alike.columns, device);
    const auto from = [&](size_t stack) {
      return alike.places.begin() + static_cast<std::ptrdiff_t>(stack * count / stacks);
    };
    for (size_t stack = 0; stack < stacks; ++stack) {
      std::vector<Place> places(from(stack), from(stack + 1));
      std::vector<std::string> names;
      for (const Place& place : places) names.push_back(place.block.name);
      RotatedMatrices matrices(config_, std::move(names), alike.rows, alike.columns, alike.decay, device);
      matrices_.push_back({std::move(places), std::move(matrices)});
    }
  }
}

std::vector<RotatingOptimizer::Alike> RotatingOptimizer::kinds_of(const std::vector<ParameterSpec>& specs) {
  std::vector<Alike> kinds;
  for (size_t i = 0; i < specs.size(); ++i) {
    for (const MatrixBlock& block : matrix_blocks(specs[i])) {
      auto alike = std::find_if(kinds.begin(), kinds.end(), [&](const Alike& kind) {
        return kind.rows == block.rows && kind.columns == block.columns && kind.decay == specs[i].decay;
      });
      if (alike == kinds.end()) alike = kinds.insert(kinds.end(), {block.rows, block.columns, specs[i].decay, {}});
      alike->places.push_back({i, block});
    }
  }
  return kinds;
}

void RotatingOptimizer::set(const AdamSettings& settings) {
  const bool bf16_moments = config_.bf16_moments;
  static_cast<AdamSettings&>(config_) = settings;
  config_.bf16_moments = bf16_moments;
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

StepBytes RotatingOptimizer::step_bytes(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs,
                                        const StepSetting& setting) {
  const RotationConfig rotation = rotation_config(config);
  // A refresh on a device has most: what the matrices of a stack take in fp32, so many times (most of it as fp64).
  constexpr double kCopies = 16, kFloat = 4;
  double most = 0;
  for (const Alike& alike : kinds_of(specs)) {
    if (setting.device.is_cpu()) {
      most = std::max(most, RotatedMatrices::step_bytes(rotation, alike.places[0].block, setting.in_halves));
      continue;
    }
    const size_t count = alike.places.size() * static_cast<size_t>(setting.layers);
    const size_t stacks = stacks_of(count, alike.rows, alike.columns, setting.device);
    const auto in_one = static_cast<double>((count + stacks - 1) / stacks);
    most = std::max(most,
                    kCopies * kFloat * in_one * static_cast<double>(alike.rows) * static_cast<double>(alike.columns));
  }
  return {most, most};
}

}  // namespace gyre
