#include "gyre/optim/basis_rotation.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "gyre/optim/adam_kernel.h"
#include "gyre/optim/state.h"

namespace gyre {
namespace {

// a b in the type that `config.products` asks for; the result is fp32.
at::Tensor product(const at::Tensor& a, const at::Tensor& b, const OptimizerConfig& config) {
  if (config.products != "bf16") return at::mm(a, b);
  return at::mm(a.to(at::kBFloat16), b.to(at::kBFloat16)).to(at::kFloat);
}

at::Tensor reordered(const at::Tensor& x, int64_t dimension, const at::Tensor& order) {
  return order.defined() ? x.index_select(dimension, order) : x;
}

}  // namespace

RotatedMatrix::RotatedMatrix(std::string name, int64_t rows, int64_t columns, bool decay)
    : name_(std::move(name)),
      decay_(decay),
      left_(rows),
      right_(columns),
      first_(at::zeros({rows, columns}, at::TensorOptions().dtype(at::kFloat))),
      second_(at::zeros({rows, columns}, at::TensorOptions().dtype(at::kFloat))) {}

void RotatedMatrix::step(const OptimizerConfig& config, const at::Tensor& weight, const at::Tensor& gradient,
                         const UpdateContext& context) {
  accumulate(gradient, config);
  if (context.update % config.frequency == 0) refresh();

  const AdamFactors factors = adam_factors(config.beta1, config.beta2, config.epsilon, context.update);
  const double decay = decay_ ? context.learning_rate * config.weight_decay : 0;
  if (!left_.ready()) {
    adamw_step(weight, gradient, first_, second_, factors, context.learning_rate, decay);
    return;
  }
  const at::Tensor& u = left_.vectors();
  const at::Tensor& v = right_.vectors();
  const at::Tensor rotated = product(product(u.t(), gradient, config), v, config);
  adam_direction(rotated, first_, second_, factors);
  if (decay > 0) weight.mul_(1 - decay);
  weight.sub_(product(product(u, rotated, config), v.t(), config), context.learning_rate);
}

void RotatedMatrix::accumulate(const at::Tensor& gradient, const OptimizerConfig& config) {
  left_.accumulate(product(gradient, gradient.t(), config), config.beta2);
  right_.accumulate(product(gradient.t(), gradient, config), config.beta2);
}

void RotatedMatrix::refresh() {
  const bool cold = !left_.ready();
  const BasisChange left = left_.refresh();
  const BasisChange right = right_.refresh();
  const at::Tensor first = reordered(reordered(first_, 0, left.order), 1, right.order);
  first_.copy_(at::mm(at::mm(left.rotation.t(), first), right.rotation));
  if (cold) {
    second_.copy_(at::mm(at::mm(left.rotation.square().t(), second_), right.rotation.square()));
  } else {
    second_.copy_(reordered(reordered(second_, 0, left.order), 1, right.order));
  }
}

void RotatedMatrix::save(NamedTensors& state) const {
  state[name_ + "/first"] = first_;
  state[name_ + "/second"] = second_;
  state[name_ + "/left_covariance"] = left_.covariance();
  state[name_ + "/left_basis"] = left_.vectors();
  state[name_ + "/right_covariance"] = right_.covariance();
  state[name_ + "/right_basis"] = right_.vectors();
}

void RotatedMatrix::load(const NamedTensors& state) {
  load_tensor(state, name_ + "/first", first_);
  load_tensor(state, name_ + "/second", second_);
  load_tensor(state, name_ + "/left_covariance", left_.covariance());
  load_tensor(state, name_ + "/left_basis", left_.vectors());
  load_tensor(state, name_ + "/right_covariance", right_.covariance());
  load_tensor(state, name_ + "/right_basis", right_.vectors());
  left_.restore();
  right_.restore();
}

BasisRotation::BasisRotation(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs) : config_(config) {
  for (const ParameterSpec& spec : specs) {
    Parameter parameter;
    if (spec.rotate && spec.shape.size() == 2) {
      const int64_t rows = spec.shape[0] / spec.row_blocks;
      for (int block = 0; block < spec.row_blocks; ++block) {
        const std::string name = spec.row_blocks == 1 ? spec.name : fmt::format("{}[{}]", spec.name, block);
        parameter.blocks.emplace_back(name, rows, spec.shape[1], spec.decay);
      }
    } else {
      parameter.moments.emplace_back(spec);
    }
    parameters_.push_back(std::move(parameter));
  }
}

void BasisRotation::step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
                         const UpdateContext& context) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    for (AdamMoments& moments : parameters_[i].moments) moments.step(config_, weights[i], gradients[i], context);
    auto& blocks = parameters_[i].blocks;
    for (size_t block = 0; block < blocks.size(); ++block) {
      const int64_t rows = weights[i].size(0) / static_cast<int64_t>(blocks.size());
      const auto begin = static_cast<int64_t>(block) * rows;
      blocks[block].step(config_, weights[i].narrow(0, begin, rows), gradients[i].narrow(0, begin, rows), context);
    }
  }
}

NamedTensors BasisRotation::state() const {
  NamedTensors state;
  for (const Parameter& parameter : parameters_) {
    for (const AdamMoments& moments : parameter.moments) moments.save(state);
    for (const RotatedMatrix& block : parameter.blocks) block.save(state);
  }
  return state;
}

void BasisRotation::load_state(const NamedTensors& state) {
  for (Parameter& parameter : parameters_) {
    for (AdamMoments& moments : parameter.moments) moments.load(state);
    for (RotatedMatrix& block : parameter.blocks) block.load(state);
  }
}

}  // namespace gyre
