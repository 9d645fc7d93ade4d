// The optimizers that asynchronous pipelines are usually given against stale gradients. Each is AdamW but for one idea;
// names and constants are their papers'.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gyre/optim/adamw.h"
#include "gyre/optim/config.h"
#include "gyre/tensors/matrix_block.h"

namespace gyre {

// A warm-up that knows the delay (Yang et al., PipeMare, 2021, section 3.1): a stage whose gradients are tau updates
// old learns at lr / tau^p; p falls from 1 to 0 over the first `delay_warmup` updates. PipeDream-LR is AdamW with it;
// it goes with any other optimizer too.
class DelayDiscount final : public Optimizer {
 public:
  DelayDiscount(std::unique_ptr<Optimizer> optimizer, int64_t delay_warmup)
      : optimizer_(std::move(optimizer)), delay_warmup_(delay_warmup) {}
  void step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
            const UpdateContext& context) override;
  NamedTensors state() const override { return optimizer_->state(); }
  void load_state(const NamedTensors& state) override { optimizer_->load_state(state); }

 private:
  std::unique_ptr<Optimizer> optimizer_;
  int64_t delay_warmup_;
};

// Delay-compensated gradients (Zheng et al., DC-ASGD, 2017): g + lambda g*g*(W_now - W_then), W_then the weights that
// the gradient was computed with, as many updates ago as the delay says.
class DelayCompensated final : public Optimizer {
 public:
  DelayCompensated(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs, at::Device device);
  void step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
            const UpdateContext& context) override;
  // The weights of the last updates belong to the pipeline's filling, not to the state: after a drain there is no
  // delay.
  NamedTensors state() const override { return adamw_.state(); }
  void load_state(const NamedTensors& state) override;

 private:
  double lambda_;
  AdamW adamw_;
  std::deque<std::vector<at::Tensor>> past_;  // past_[i]: the weights i + 1 updates ago
};

// Nesterov's momentum for asynchronous pipelines (arXiv 2505.01099): NAdam with decoupled weight decay.
//   mu_t = b1 (1 - 0.5 * 0.96^(0.004 t)), P_t = mu_1 ... mu_t
//   step = [(1 - mu_t) / (1 - P_t) g + mu_{t+1} / (1 - P_t mu_{t+1}) m] / (sqrt(v / (1 - b2^t)) + eps)
class NesterovAsync final : public Optimizer {
 public:
  NesterovAsync(const AdamSettings& config, const std::vector<ParameterSpec>& specs, at::Device device);
  void step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
            const UpdateContext& context) override;
  NamedTensors state() const override;
  void load_state(const NamedTensors& state) override;

 private:
  double momentum_product(int64_t update);

  AdamSettings config_;
  std::vector<ParameterSpec> specs_;
  std::vector<at::Tensor> exp_avg_, exp_avg_sq_;
  int64_t product_update_ = 0;  // the product of momenta up to this update
  double product_ = 1;
};

// Muon (Jordan, 2024): the momentum of every rotatable matrix is made orthogonal by five Newton-Schulz steps; AdamW for
// the rest. Matrices learn at lr times `matrix_lr_ratio`.
class Muon final : public Optimizer {
 public:
  Muon(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs, at::Device device);
  void step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
            const UpdateContext& context) override;
  NamedTensors state() const override;
  void load_state(const NamedTensors& state) override;

 private:
  struct Parameter {
    ParameterSpec spec;
    std::vector<MatrixBlock> matrices;  // Muon's; where there are none, AdamW has the parameter
    std::vector<AdamMoments> moments;
    at::Tensor momentum;  // of all matrices
  };
  void step_matrices(Parameter& parameter, const at::Tensor& weight, const at::Tensor& gradient,
                     const UpdateContext& context) const;

  AdamSettings config_;
  double matrix_lr_ratio_;
  std::vector<Parameter> parameters_;
};

// Error feedback (after arXiv 2606.30634): W <- W - (u + (u - u_previous)), u what AdamW would subtract, rate and decay
// in it; W <- W - u where the gradient is not late, and where there is no previous step. Made for a delay of one.
class ErrorFeedback final : public Optimizer {
 public:
  ErrorFeedback(const AdamSettings& config, const std::vector<ParameterSpec>& specs, at::Device device);
  void step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
            const UpdateContext& context) override;
  NamedTensors state() const override;
  void load_state(const NamedTensors& state) override;

 private:
  AdamW adamw_;
  std::vector<ParameterSpec> specs_;
  std::vector<at::Tensor> last_step_;  // zeros: there was none
};

}  // namespace gyre
