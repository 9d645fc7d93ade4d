#include "gyre/optim/config.h"

#include <fmt/format.h>

#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/optim/adamw.h"
#include "gyre/optim/basis_rotation.h"

namespace gyre {
namespace {

void require(bool holds, const char* key, const std::string& value, const char* wanted) {
  if (!holds) throw InputError(fmt::format("[optimizer] {} is {}; give {}", key, value, wanted));
}

void check(const OptimizerConfig& config) {
  const auto number = [](auto value) { return fmt::format("{}", value); };
  require(config.beta1 >= 0 && config.beta1 < 1, "betas[0]", number(config.beta1), "0 or more and less than 1");
  require(config.beta2 >= 0 && config.beta2 < 1, "betas[1]", number(config.beta2), "0 or more and less than 1");
  require(config.epsilon > 0, "epsilon", number(config.epsilon), "more than 0");
  require(config.weight_decay >= 0, "weight_decay", number(config.weight_decay), "0 or more");
  if (config.kind != "basis-rotation") return;
  require(config.frequency >= 1, "frequency", number(config.frequency), "at least 1");
  require(config.source == "second", "source", "\"" + config.source + "\"", "\"second\"");
  require(config.geometry == "bilateral", "geometry", "\"" + config.geometry + "\"", "\"bilateral\"");
  require(config.products == "fp32" || config.products == "bf16", "products", "\"" + config.products + "\"",
          "\"fp32\" or \"bf16\"");
}

}  // namespace

std::vector<std::string> optimizer_names() {
  return {"adamw", "basis-rotation"};
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, std::vector<ParameterSpec> specs) {
  check(config);
  if (config.kind == "adamw") return std::make_unique<AdamW>(config, specs);
  if (config.kind == "basis-rotation") return std::make_unique<BasisRotation>(config, specs);
  throw InputError(
      fmt::format("[optimizer] kind = \"{}\" is unknown{}", config.kind, suggestion(config.kind, optimizer_names())));
}

}  // namespace gyre
