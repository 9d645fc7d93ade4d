// A warm-up that knows the delay (Yang et al., PipeMare, 2021, section 3.1): a stage whose gradients are tau updates
// old learns at lr / tau^p; p falls from 1 to 0 over the first `delay_warmup` updates. PipeDream-LR is AdamW with it;
// it goes with any other optimizer too.
#pragma once

#include <memory>
#include <utility>

#include "gyre/optim/optimizer.h"

namespace gyre {

class DelayDiscount final : public Optimizer {
 public:
  DelayDiscount(std::unique_ptr<Optimizer> optimizer, int64_t delay_warmup)
      : optimizer_(std::move(optimizer)), delay_warmup_(delay_warmup) {}
  void step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
            const UpdateContext& context) override {
    optimizer_->step(weights, gradients, slowed(context));
  }
  void step_split(std::span<const SplitWeight> weights, std::span<const at::Tensor> gradients,
                  const UpdateContext& context) override {
    optimizer_->step_split(weights, gradients, slowed(context));
  }
  void skip(std::span<const at::Tensor> weights, const UpdateContext& context) override {
    optimizer_->skip(weights, context);
  }
  bool takes_gradient_factor() const override { return optimizer_->takes_gradient_factor(); }
  NamedTensors state() const override { return optimizer_->state(); }
  void load_state(const NamedTensors& state) override { optimizer_->load_state(state); }

 private:
  UpdateContext slowed(UpdateContext context) const;

  std::unique_ptr<Optimizer> optimizer_;
  int64_t delay_warmup_;
};

}  // namespace gyre
