#include "gyre/optim/config.h"

#include <fmt/format.h>

#include "gyre/core/error.h"
#include "gyre/core/option_range.h"
#include "gyre/optim/delay_compensated.h"
#include "gyre/optim/delay_discount.h"
#include "gyre/optim/error_feedback.h"
#include "gyre/optim/muon.h"
#include "gyre/optim/nesterov_async.h"
#include "gyre/optim/parameter/adam_moments.h"
#include "gyre/optim/parameter/matrix_parameter.h"
#include "gyre/optim/parameter_optimizer.h"
#include "gyre/optim/rotating_optimizer.h"
#include "gyre/optim/settings/optimizer_settings.h"

namespace gyre {
namespace {

// What it shares with a run's table [optimizer], so that both have the same ranges.
OptimizerSettings common_settings(const OptimizerConfig& config) {
  OptimizerSettings settings;
  settings.betas = {config.beta1, config.beta2};
  settings.epsilon = config.epsilon;
  settings.weight_decay = config.weight_decay;
  settings.moments = config.bf16_moments ? "bf16" : "fp32";
  settings.delay_warmup = config.delay_warmup;
  return settings;
}

template <typename SomeOptimizer>
OptimizerMaker maker_of(const char* name) {
  return {name,
          [](const OptimizerConfig& config, const std::vector<ParameterSpec>& specs, at::Device device)
              -> std::unique_ptr<Optimizer> { return std::make_unique<SomeOptimizer>(config, specs, device); },
          SomeOptimizer::state_bytes,
          SomeOptimizer::update_cost,
          SomeOptimizer::passing_bytes,
          SomeOptimizer::step_bytes};
}

template <typename Parameter>
OptimizerMaker maker(const char* name) {
  return maker_of<ParameterOptimizer<Parameter>>(name);
}

}  // namespace

void check_optimizer(const OptimizerConfig& config) {
  const OptimizerKind& kind = optimizer_kinds().at(config.kind);
  const OptimizerSettings common = common_settings(config);
  check_ranges("[optimizer]", common);
  check_faults("[optimizer]", faults_of(common));
  const std::string table = fmt::format("[optimizer.{}]", config.kind);
  check_ranges(table, config.own);
  if (kind.faults != nullptr) check_faults(table, kind.faults(config.own));
}

Registry<OptimizerMaker>& optimizer_makers() {
  static Registry<OptimizerMaker> makers("[optimizer] kind", {
                                                                 maker_of<RotatingOptimizer>("basis-rotation"),
                                                                 maker<AdamMoments>("adamw"),
                                                                 maker<NesterovAsync>("nesterov-async"),
                                                                 maker<AdamMoments>("pipedream-lr"),
                                                                 maker<AdamMoments>("pipemare"),
                                                                 maker<AdamMoments>("prediction"),
                                                                 maker<DelayCompensated>("delay-compensated"),
                                                                 maker<MatrixParameter<MuonMatrices>>("muon"),
                                                                 maker<ErrorFeedback>("error-feedback"),
                                                             });
  return makers;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs,
                                          at::Device device) {
  check_optimizer(config);
  auto optimizer = optimizer_makers().at(config.kind).make(config, specs, device);
  if (optimizer == nullptr) throw InputError(fmt::format("[optimizer] kind {}: its make gave null", config.kind));
  if (config.delay_warmup == 0) return optimizer;
  return std::make_unique<DelayDiscount>(std::move(optimizer), config.delay_warmup);
}

}  // namespace gyre
