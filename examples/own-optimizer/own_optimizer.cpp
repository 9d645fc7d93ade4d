// gyre-engine with an additional optimizer, sign descent. Usage: own_optimizer train run.toml --out run --set
// optimizer.kind=sign
#include <ATen/ATen.h>

#include "gyre/app/programs.h"
#include "gyre/optim/config.h"

namespace {

class SignDescent final : public gyre::Optimizer {
 public:
  void step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
            const gyre::UpdateContext& context) override {
    for (size_t i = 0; i < weights.size(); ++i) weights[i].sub_(gradients[i].sign(), context.learning_rate);
  }
  gyre::NamedTensors state() const override { return {}; }
  void load_state(const gyre::NamedTensors&) override {}
};

}  // namespace

int main(int argc, char** argv) {
  gyre::optimizer_kinds().add({.name = "sign", .meaning = "a step of one size along the gradient's signs"});
  gyre::optimizer_makers().add({"sign",
                                [](const gyre::OptimizerConfig&, const std::vector<gyre::ParameterSpec>&, at::Device)
                                    -> std::unique_ptr<gyre::Optimizer> { return std::make_unique<SignDescent>(); },
                                [](const gyre::OptimizerConfig&, const gyre::ParameterSpec&) { return 0.0; }});
  return gyre::app::run_engine(argc, argv);
}
