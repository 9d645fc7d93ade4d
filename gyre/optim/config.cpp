#include "gyre/optim/config.h"

#include <fmt/format.h>

#include "gyre/core/error.h"
#include "gyre/core/option_range.h"
#include "gyre/optim/adamw.h"
#include "gyre/optim/basis_rotation.h"
#include "gyre/optim/stale.h"
#include "gyre/optim/state_bytes.h"

namespace gyre {
namespace {

void require(bool holds, const char* key, double value, const char* wanted) {
  if (!holds) throw InputError(fmt::format("[optimizer] {} is {}; give {}", key, value, wanted));
}

template <typename SomeOptimizer>
std::unique_ptr<Optimizer> make(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs,
                                at::Device device) {
  return std::make_unique<SomeOptimizer>(config, specs, device);
}

}  // namespace

void check_optimizer(const OptimizerConfig& config) {
  const OptimizerKind& kind = optimizer_kinds().at(config.kind);
  require(config.beta1 >= 0 && config.beta1 < 1, "betas[0]", config.beta1, "0 or more and less than 1");
  require(config.beta2 >= 0 && config.beta2 < 1, "betas[1]", config.beta2, "0 or more and less than 1");
  require(config.epsilon > 0, "epsilon", config.epsilon, "more than 0");
  require(config.weight_decay >= 0, "weight_decay", config.weight_decay, "0 or more");
  require(config.delay_warmup >= 0, "delay_warmup", static_cast<double>(config.delay_warmup), "0 or more");
  config.own.each_option([&](const char* key, const auto& value, const Range& range, const char*) {
    check_range(fmt::format("[optimizer.{}] {}", config.kind, key), value, range);
  });
  if (kind.faults == nullptr) return;
  for (const OptionFault& fault : kind.faults(config.own)) {
    throw InputError(fmt::format("[optimizer.{}] {} {}", config.kind, fault.keys[0], fault.what));
  }
}

Registry<OptimizerMaker>& optimizer_makers() {
  static Registry<OptimizerMaker> makers("[optimizer] kind",
                                         {
                                             {"basis-rotation", make<BasisRotation>, rotation_bytes},
                                             {"adamw", make<AdamW>, adam_bytes},
                                             {"nesterov-async", make<NesterovAsync>, adam_bytes},
                                             {"pipedream-lr", make<AdamW>, adam_bytes},
                                             {"pipemare", make<AdamW>, adam_bytes},
                                             {"prediction", make<AdamW>, adam_bytes},
                                             {"delay-compensated", make<DelayCompensated>, adam_bytes},
                                             {"muon", make<Muon>, muon_bytes},
                                             {"error-feedback", make<ErrorFeedback>, error_feedback_bytes},
                                         });
  return makers;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, std::vector<ParameterSpec> specs,
                                          at::Device device) {
  check_optimizer(config);
  auto optimizer = optimizer_makers().at(config.kind).make(config, specs, device);
  if (config.delay_warmup == 0) return optimizer;
  return std::make_unique<DelayDiscount>(std::move(optimizer), config.delay_warmup);
}

}  // namespace gyre
