// "signum": W <- W - lr sign(M), where M is the mean of gradients.
#include <ATen/ATen.h>

#include "gyre/core/options.h"
#include "gyre/optim/config.h"
#include "gyre/optim/parameter/state.h"
#include "gyre/optim/settings/optimizer_kind.h"
#include "outside/components.h"

namespace gyre::outside {
namespace {

struct SignumSettings {
  double momentum = 0.9;

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("momentum", self.momentum, between(0, 1), "decay of the mean whose sign is the step");
  }
  bool operator==(const SignumSettings&) const = default;
};

class Signum final : public Optimizer {
 public:
  Signum(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs, at::Device device)
      : momentum_(config.own.get<SignumSettings>().momentum), specs_(specs) {
    for (const ParameterSpec& spec : specs) {
      means_.push_back(at::zeros(spec.shape, at::TensorOptions().dtype(at::kFloat).device(device)));
    }
  }
  void step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
            const UpdateContext& context) override {
    for (size_t i = 0; i < means_.size(); ++i) {
      means_[i].mul_(momentum_).add_(gradients[i], 1 - momentum_);
      weights[i].sub_(means_[i].sign(), context.learning_rate);
    }
  }
  NamedTensors state() const override {
    NamedTensors state;
    for (size_t i = 0; i < means_.size(); ++i) state[specs_[i].name + "/momentum"] = means_[i];
    return state;
  }
  void load_state(const NamedTensors& state) override {
    for (size_t i = 0; i < means_.size(); ++i) load_tensor(state, specs_[i].name + "/momentum", means_[i]);
  }

 private:
  double momentum_;
  std::vector<ParameterSpec> specs_;
  std::vector<at::Tensor> means_;
};

}  // namespace

void add_signum() {
  optimizer_kinds().add({.name = "signum", .meaning = "the sign of the momentum", .own = SignumSettings()});
  optimizer_makers().add({"signum",
                          [](const OptimizerConfig& config, const std::vector<ParameterSpec>& specs, at::Device device)
                              -> std::unique_ptr<Optimizer> { return std::make_unique<Signum>(config, specs, device); },
                          [](const OptimizerConfig&, const ParameterSpec& spec) {
                            double bytes = 4;
                            for (const int64_t size : spec.shape) bytes *= static_cast<double>(size);
                            return bytes;
                          }});
}

}  // namespace gyre::outside
