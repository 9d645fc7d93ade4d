#include "gyre/optim/stale.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "gyre/optim/adam_kernel.h"
#include "gyre/optim/settings/stale_settings.h"
#include "gyre/optim/state.h"

namespace gyre {
namespace {

at::Tensor zeros(const ParameterSpec& spec, at::Device device) {
  return at::zeros(spec.shape, at::TensorOptions().dtype(at::kFloat).device(device));
}

std::vector<at::Tensor> zeros(const std::vector<ParameterSpec>& specs, at::Device device) {
  std::vector<at::Tensor> tensors;
  for (const ParameterSpec& spec : specs) tensors.push_back(zeros(spec, device));
  return tensors;
}

double decay_of(const ParameterSpec& spec, const AdamSettings& config, const UpdateContext& context) {
  return spec.decay ? context.learning_rate * config.weight_decay : 0;
}

// X <- 3.4445 X - 4.7750 (X X^T) X + 2.0315 (X X^T)^2 X, five times: singular values go to about 1.
at::Tensor orthogonalised(const at::Tensor& momentum) {
  const bool tall = momentum.size(0) > momentum.size(1);
  at::Tensor x = tall ? momentum.t() : momentum;
  x = x / (x.norm() + 1e-7);
  for (int iteration = 0; iteration < 5; ++iteration) {
    const at::Tensor a = at::mm(x, x.t());
    const at::Tensor b = at::mul(a, -4.7750).addmm_(a, a, 1, 2.0315);
    x = at::mul(x, 3.4445).addmm_(b, x);
  }
  return tall ? x.t() : x;
}

}  // namespace

void DelayDiscount::step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
                         const UpdateContext& context) {
  UpdateContext slowed = context;
  const double progress = static_cast<double>(context.update) / static_cast<double>(delay_warmup_);
  const double p = 1 - std::min(progress, 1.0);
  slowed.learning_rate /= std::pow(static_cast<double>(std::max<int64_t>(1, context.delay)), p);
  optimizer_->step(weights, gradients, slowed);
}

DelayCompensated::DelayCompensated(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs,
                                   at::Device device)
    : lambda_(config.own.get<DelayCompensatedSettings>().lambda), adamw_(config, specs, device) {}

void DelayCompensated::step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
                            const UpdateContext& context) {
  const auto delay = std::min<size_t>(static_cast<size_t>(context.delay), past_.size());
  if (delay > 0) {
    const auto& then = past_[delay - 1];
    for (size_t i = 0; i < weights.size(); ++i) {
      gradients[i].addcmul_(gradients[i].square(), weights[i] - then[i], lambda_);
    }
  }
  // One more than the delay, since delays grow while the pipeline fills.
  std::vector<at::Tensor> kept;
  if (past_.size() > static_cast<size_t>(context.delay)) {
    kept = std::move(past_.back());
    past_.pop_back();
    for (size_t i = 0; i < weights.size(); ++i) kept[i].copy_(weights[i]);
  } else {
    for (const at::Tensor& weight : weights) kept.push_back(weight.clone());
  }
  past_.push_front(std::move(kept));
  adamw_.step(weights, gradients, context);
}

void DelayCompensated::load_state(const NamedTensors& state) {
  past_.clear();
  adamw_.load_state(state);
}

NesterovAsync::NesterovAsync(const AdamSettings& config, const std::vector<ParameterSpec>& specs, at::Device device)
    : config_(config), specs_(specs), exp_avg_(zeros(specs, device)), exp_avg_sq_(zeros(specs, device)) {}

namespace {
double nesterov_momentum(double beta1, int64_t update) {
  return beta1 * (1 - 0.5 * std::pow(0.96, 0.004 * static_cast<double>(update)));
}
}  // namespace

double NesterovAsync::momentum_product(int64_t update) {
  if (update < product_update_) {
    product_update_ = 0;
    product_ = 1;
  }
  while (product_update_ < update) product_ *= nesterov_momentum(config_.beta1, ++product_update_);
  return product_;
}

void NesterovAsync::step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
                         const UpdateContext& context) {
  const double now = nesterov_momentum(config_.beta1, context.update);
  const double next = nesterov_momentum(config_.beta1, context.update + 1);
  const double product = momentum_product(context.update);
  const double correction2 = 1 - std::pow(config_.beta2, static_cast<double>(context.update));
  for (size_t i = 0; i < weights.size(); ++i) {
    const at::Tensor& gradient = gradients[i];
    exp_avg_[i].mul_(config_.beta1).add_(gradient, 1 - config_.beta1);
    exp_avg_sq_[i].mul_(config_.beta2).addcmul_(gradient, gradient, 1 - config_.beta2);
    const at::Tensor scale = exp_avg_sq_[i].div(correction2).sqrt_().add_(config_.epsilon);
    const at::Tensor direction =
        gradient.mul((1 - now) / (1 - product)).add_(exp_avg_[i], next / (1 - product * next)).div_(scale);
    const double decay = decay_of(specs_[i], config_, context);
    if (decay > 0) weights[i].mul_(1 - decay);
    weights[i].sub_(direction, context.learning_rate);
  }
}

NamedTensors NesterovAsync::state() const {
  NamedTensors state;
  for (size_t i = 0; i < specs_.size(); ++i) {
    state[specs_[i].name + "/exp_avg"] = exp_avg_[i];
    state[specs_[i].name + "/exp_avg_sq"] = exp_avg_sq_[i];
  }
  return state;
}

void NesterovAsync::load_state(const NamedTensors& state) {
  for (size_t i = 0; i < specs_.size(); ++i) {
    load_tensor(state, specs_[i].name + "/exp_avg", exp_avg_[i]);
    load_tensor(state, specs_[i].name + "/exp_avg_sq", exp_avg_sq_[i]);
  }
}

Muon::Muon(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs, at::Device device)
    : config_(config), matrix_lr_ratio_(config.own.get<MuonSettings>().matrix_lr_ratio) {
  for (const ParameterSpec& spec : specs) {
    Parameter parameter{spec, matrix_blocks(spec), {}, {}};
    if (parameter.matrices.empty()) {
      parameter.moments.emplace_back(spec, device);
    } else {
      parameter.momentum = zeros(spec, device);
    }
    parameters_.push_back(std::move(parameter));
  }
}

void Muon::step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
                const UpdateContext& context) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& parameter = parameters_[i];
    for (AdamMoments& moments : parameter.moments) moments.step(config_, weights[i], gradients[i], context);
    if (!parameter.matrices.empty()) step_matrices(parameter, weights[i], gradients[i], context);
  }
}

// M <- b M + (1-b) G; X = (1-b) G + b M, made orthogonal; W <- W - rate sqrt(max(1, rows / columns)) X.
void Muon::step_matrices(Parameter& parameter, const at::Tensor& weight, const at::Tensor& gradient,
                         const UpdateContext& context) const {
  constexpr double kMomentum = 0.95;
  const double rate = context.learning_rate * matrix_lr_ratio_;
  parameter.momentum.mul_(kMomentum).add_(gradient, 1 - kMomentum);
  const at::Tensor ahead = gradient.mul(1 - kMomentum).add_(parameter.momentum, kMomentum);
  if (parameter.spec.decay) weight.mul_(1 - rate * config_.weight_decay);
  for (const MatrixBlock& matrix : parameter.matrices) {
    const double scale =
        std::sqrt(std::max(1.0, static_cast<double>(matrix.rows) / static_cast<double>(matrix.columns)));
    matrix.of(weight).sub_(orthogonalised(matrix.of(ahead)), rate * scale);
  }
}

NamedTensors Muon::state() const {
  NamedTensors state;
  for (const Parameter& parameter : parameters_) {
    for (const AdamMoments& moments : parameter.moments) moments.save(state);
    if (parameter.momentum.defined()) state[parameter.spec.name + "/momentum"] = parameter.momentum;
  }
  return state;
}

void Muon::load_state(const NamedTensors& state) {
  for (Parameter& parameter : parameters_) {
    for (AdamMoments& moments : parameter.moments) moments.load(state);
    if (parameter.momentum.defined()) load_tensor(state, parameter.spec.name + "/momentum", parameter.momentum);
  }
}

ErrorFeedback::ErrorFeedback(const AdamSettings& config, const std::vector<ParameterSpec>& specs, at::Device device)
    : adamw_(config, specs, device), specs_(specs), last_step_(zeros(specs, device)) {}

void ErrorFeedback::step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
                         const UpdateContext& context) {
  std::vector<at::Tensor> steps;
  for (const at::Tensor& weight : weights) steps.push_back(weight.clone());
  adamw_.step(weights, gradients, context);
  for (size_t i = 0; i < weights.size(); ++i) {
    steps[i].sub_(weights[i]);
    if (context.delay > 0) weights[i].sub_((steps[i] - last_step_[i]).mul_(last_step_[i].any()));
    last_step_[i].copy_(steps[i]);
  }
}

NamedTensors ErrorFeedback::state() const {
  NamedTensors state = adamw_.state();
  for (size_t i = 0; i < specs_.size(); ++i) state[specs_[i].name + "/last_step"] = last_step_[i];
  return state;
}

void ErrorFeedback::load_state(const NamedTensors& state) {
  adamw_.load_state(state);
  for (size_t i = 0; i < specs_.size(); ++i) load_tensor(state, specs_[i].name + "/last_step", last_step_[i]);
}

}  // namespace gyre
