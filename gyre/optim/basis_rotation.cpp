#include "gyre/optim/basis_rotation.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

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

RotatedMatrix::RotatedMatrix(const OptimizerConfig& config, std::string name, int64_t rows, int64_t columns, bool decay,
                             at::Device device)
    : name_(std::move(name)),
      decay_(decay),
      keeps_covariance_(config.source == "second"),
      first_(at::zeros({rows, columns}, at::TensorOptions().dtype(at::kFloat).device(device))),
      second_(at::zeros_like(first_)) {
  const bool both = config.geometry == "bilateral";
  const auto short_enough = [&](int64_t side) { return config.max_dimension == 0 || side <= config.max_dimension; };
  if ((both || rows <= columns) && short_enough(rows)) left_.emplace(rows, keeps_covariance_, device);
  if ((both || rows > columns) && short_enough(columns)) right_.emplace(columns, keeps_covariance_, device);
}

bool RotatedMatrix::ready() const {
  return (left_ && left_->ready()) || (right_ && right_->ready());
}

void RotatedMatrix::step(const OptimizerConfig& config, const at::Tensor& weight, const at::Tensor& gradient,
                         const UpdateContext& context) {
  accumulate(gradient, config);
  const AdamFactors factors = adam_factors(config.beta1, config.beta2, config.epsilon, context.update);
  const double decay = decay_ ? context.learning_rate * config.weight_decay : 0;
  if (refresh_is_due(config, context)) {
    const Covariances of = covariances(gradient, config);
    if (config.refresh != "adaptive" || !ready() || has_drifted(of, config)) refresh(of, config);
  }
  if (!ready()) {
    adamw_step(weight, gradient, first_, second_, factors, context.learning_rate, decay);
    return;
  }
  const at::Tensor rotated = to_rotated(gradient, config);
  adam_direction(rotated, first_, second_, factors);
  if (decay > 0) weight.mul_(1 - decay);
  weight.sub_(from_rotated(rotated, config), context.learning_rate);
}

at::Tensor RotatedMatrix::to_rotated(const at::Tensor& x, const OptimizerConfig& config) const {
  const at::Tensor turned = left_ ? product(left_->vectors().t(), x, config) : x;
  return right_ ? product(turned, right_->vectors(), config) : turned;
}

at::Tensor RotatedMatrix::from_rotated(const at::Tensor& x, const OptimizerConfig& config) const {
  const at::Tensor turned = left_ ? product(left_->vectors(), x, config) : x;
  return right_ ? product(turned, right_->vectors().t(), config) : turned;
}

void RotatedMatrix::accumulate(const at::Tensor& gradient, const OptimizerConfig& config) {
  if (!keeps_covariance_) return;
  if (left_) left_->accumulate(product(gradient, gradient.t(), config), config.beta2);
  if (right_) right_->accumulate(product(gradient.t(), gradient, config), config.beta2);
}

RotatedMatrix::Covariances RotatedMatrix::covariances(const at::Tensor& gradient, const OptimizerConfig& config) const {
  Covariances of;
  if (keeps_covariance_) {
    if (left_) of.left = left_->covariance();
    if (right_) of.right = right_->covariance();
    return of;
  }
  at::Tensor momentum = first_;
  if (left_ && left_->ready()) momentum = at::mm(left_->vectors(), momentum);
  if (right_ && right_->ready()) momentum = at::mm(momentum, right_->vectors().t());
  momentum = momentum * config.beta1 + gradient * (1 - config.beta1);  // as it is about to be
  if (left_) of.left = at::mm(momentum, momentum.t());
  if (right_) of.right = at::mm(momentum.t(), momentum);
  return of;
}

bool RotatedMatrix::refresh_is_due(const OptimizerConfig& config, const UpdateContext& context) const {
  if (!left_ && !right_) return false;
  int64_t every = config.frequency;
  if (config.refresh == "stage-aware" && ready() && context.stages > 1) {
    // The last stage has no delay: as if it had half an update's.
    const double delay = std::max(0.5, static_cast<double>(context.stages - 1 - context.stage));
    const double interval = static_cast<double>(config.frequency * (context.stages - 1)) / (2 * delay);
    every = std::max<int64_t>(1, std::llround(interval));
  }
  return context.update % every == 0;
}

bool RotatedMatrix::has_drifted(const Covariances& of, const OptimizerConfig& config) const {
  return (left_ && left_->drift(of.left) > config.drift) || (right_ && right_->drift(of.right) > config.drift);
}

void RotatedMatrix::refresh(const Covariances& of, const OptimizerConfig& config) {
  const bool cold = !ready();
  const BasisChange left = left_ ? left_->refresh(of.left) : BasisChange{};
  const BasisChange right = right_ ? right_->refresh(of.right) : BasisChange{};
  const auto moved = [&](const at::Tensor& x, bool squared) {
    at::Tensor y = reordered(reordered(x, 0, left.order), 1, right.order);
    if (left_) y = at::mm((squared ? left.rotation.square() : left.rotation).t(), y);
    if (right_) y = at::mm(y, squared ? right.rotation.square() : right.rotation);
    return y;
  };
  first_.copy_(moved(first_, false));
  if (cold || config.transport) {
    second_.copy_(moved(second_, true));
  } else {
    second_.copy_(reordered(reordered(second_, 0, left.order), 1, right.order));
  }
}

void RotatedMatrix::save(NamedTensors& state) const {
  state[name_ + "/first"] = first_;
  state[name_ + "/second"] = second_;
  const auto save_side = [&](const std::optional<RotationBasis>& side, const char* which) {
    if (!side) return;
    if (keeps_covariance_) state[name_ + "/" + which + "_covariance"] = side->covariance();
    state[name_ + "/" + which + "_basis"] = side->vectors();
  };
  save_side(left_, "left");
  save_side(right_, "right");
}

void RotatedMatrix::load(const NamedTensors& state) {
  load_tensor(state, name_ + "/first", first_);
  load_tensor(state, name_ + "/second", second_);
  const auto load_side = [&](std::optional<RotationBasis>& side, const char* which) {
    if (!side) return;
    if (keeps_covariance_) load_tensor(state, name_ + "/" + which + "_covariance", side->covariance());
    load_tensor(state, name_ + "/" + which + "_basis", side->vectors());
    side->restore();
  };
  load_side(left_, "left");
  load_side(right_, "right");
}

BasisRotation::BasisRotation(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs) : config_(config) {
  for (const ParameterSpec& spec : specs) {
    Parameter parameter;
    if (spec.rotate && spec.shape.size() == 2) {
      const int64_t rows = spec.shape[0] / spec.row_blocks;
      for (int block = 0; block < spec.row_blocks; ++block) {
        const std::string name = spec.row_blocks == 1 ? spec.name : fmt::format("{}[{}]", spec.name, block);
        parameter.blocks.emplace_back(config, name, rows, spec.shape[1], spec.decay);
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
