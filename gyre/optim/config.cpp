#include "gyre/optim/config.h"

#include <fmt/format.h>

#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/optim/adamw.h"
#include "gyre/optim/basis_rotation.h"
#include "gyre/optim/stale.h"

namespace gyre {
namespace {

void require(bool holds, const char* key, const std::string& value, const char* wanted) {
  if (!holds) throw InputError(fmt::format("[optimizer] {} is {}; give {}", key, value, wanted));
}

}  // namespace

void check_optimizer(const OptimizerConfig& config) {
  const auto number = [](auto value) { return fmt::format("{}", value); };
  require(config.beta1 >= 0 && config.beta1 < 1, "betas[0]", number(config.beta1), "0 or more and less than 1");
  require(config.beta2 >= 0 && config.beta2 < 1, "betas[1]", number(config.beta2), "0 or more and less than 1");
  require(config.epsilon > 0, "epsilon", number(config.epsilon), "more than 0");
  require(config.weight_decay >= 0, "weight_decay", number(config.weight_decay), "0 or more");
  require(config.delay_warmup >= 0, "delay_warmup", number(config.delay_warmup), "0 or more");
  if (config.kind != "basis-rotation") return;
  require(config.frequency >= 1, "frequency", number(config.frequency), "at least 1");
  require(config.source == "second" || config.source == "first", "source", "\"" + config.source + "\"",
          "\"second\" or \"first\"");
  require(config.geometry == "bilateral" || config.geometry == "unilateral", "geometry", "\"" + config.geometry + "\"",
          "\"bilateral\" or \"unilateral\"");
  require(config.refresh == "fixed" || config.refresh == "stage-aware" || config.refresh == "adaptive", "refresh",
          "\"" + config.refresh + "\"", "\"fixed\", \"stage-aware\" or \"adaptive\"");
  require(config.drift > 0, "drift", number(config.drift), "more than 0");
  require(config.long_sides == "thin" || config.long_sides == "whole", "long_sides", "\"" + config.long_sides + "\"",
          "\"thin\" or \"whole\"");
  require(config.max_dimension >= 0, "max_dimension", number(config.max_dimension), "0 or more");
  require(config.refresh_lag >= 0 && config.refresh_lag < config.frequency, "refresh_lag", number(config.refresh_lag),
          "0 or more and less than frequency");
  require(config.covariance_beta >= 0 && config.covariance_beta < 1, "covariance_beta", number(config.covariance_beta),
          "0 (as betas[1]), or more and less than 1");
  require(config.covariance_every >= 1 && config.covariance_every <= config.frequency, "covariance_every",
          number(config.covariance_every), "1 to frequency");
  require(config.sketch >= 0, "sketch", number(config.sketch), "0 or more");
  require(config.sketch == 0 || config.max_dimension > 0, "sketch", number(config.sketch),
          "0, or max_dimension too: the length from which sides are sketched");
  require(config.look_ahead >= 0 && config.look_ahead <= 1, "look_ahead", number(config.look_ahead), "0 to 1");
  const auto require_type = [](const char* key, const std::string& type) {
    require(type == "fp32" || type == "bf16", key, "\"" + type + "\"", "\"fp32\" or \"bf16\"");
  };
  require_type("products", config.products);
  require_type("covariance_products", config.covariance_products);
  require_type("iteration_products", config.iteration_products);
}

namespace {

template <typename SomeOptimizer>
std::unique_ptr<Optimizer> make(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs) {
  return std::make_unique<SomeOptimizer>(config, specs);
}
struct Maker {
  const char* name;
  std::unique_ptr<Optimizer> (*make)(const OptimizerConfig&, const std::vector<ParameterSpec>&);
};
constexpr Maker kMakers[] = {
    {"adamw", make<AdamW>},
    {"basis-rotation", make<BasisRotation>},
    {"nesterov-async", make<NesterovAsync>},
    {"pipedream-lr", make<AdamW>},  // and delay_warmup
    {"pipemare", make<AdamW>},      // the same, and weights = "corrected"
    {"prediction", make<AdamW>},    // and weights = "predict"
    {"delay-compensated", make<DelayCompensated>},
    {"muon", make<Muon>},
    {"error-feedback", make<ErrorFeedback>},
};

}  // namespace

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const Maker& maker : kMakers) names.emplace_back(maker.name);
  return names;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, std::vector<ParameterSpec> specs) {
  check_optimizer(config);
  for (const Maker& maker : kMakers) {
    if (config.kind != maker.name) continue;
    auto optimizer = maker.make(config, specs);
    if (config.delay_warmup == 0) return optimizer;
    return std::make_unique<DelayDiscount>(std::move(optimizer), config.delay_warmup);
  }
  throw InputError(
      fmt::format("[optimizer] kind = \"{}\" is unknown{}", config.kind, suggestion(config.kind, optimizer_names())));
}

}  // namespace gyre
