#include "gyre/model/settings/activation.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/text.h"

namespace gyre {
namespace {

constexpr std::array<std::pair<const char*, Activation>, 4> kNames = {{{"gelu", Activation::Gelu},
                                                                       {"gelu-tanh", Activation::GeluTanh},
                                                                       {"relu", Activation::Relu},
                                                                       {"silu", Activation::Silu}}};

}  // namespace

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  for (const auto& [name, activation] : kNames) names.emplace_back(name);
  return names;
}

Activation activation_by_name(const std::string& name) {
  for (const auto& [known, activation] : kNames) {
    if (name == known) return activation;
  }
  throw InputError(fmt::format("[model] activation = \"{}\" is unknown{}", name, suggestion(name, activation_names())));
}

}  // namespace gyre
