#include "gyre/exchange/hugging_face/activations.h"

#include <fmt/format.h>

#include <utility>

namespace gyre {
namespace {

// Theirs, ours. If several of theirs mean the same, the first one is written.
constexpr std::pair<const char*, const char*> kNames[] = {
    {"gelu", "gelu"},           {"gelu_python", "gelu"}, {"gelu_new", "gelu-tanh"}, {"gelu_pytorch_tanh", "gelu-tanh"},
    {"gelu_fast", "gelu-tanh"}, {"relu", "relu"},        {"silu", "silu"},          {"swish", "silu"}};

}  // namespace

std::string read_activation(ConfigFields& config, const char* key, const std::string& usual) {
  const std::string name = config.word(key, usual);
  for (const auto& [theirs, ours] : kNames) {
    if (name == theirs) return ours;
  }
  config.fail(fmt::format("'{}' is \"{}\", which gyre does not have", key, printable(name)));
}

std::string their_activation(const std::string& ours) {
  for (const auto& [theirs, own] : kNames) {
    if (ours == own) return theirs;
  }
  return ours;
}

}  // namespace gyre
