#include "gyre/config/without_effect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <type_traits>

#include "gyre/config/tables.h"
#include "gyre/core/options.h"

namespace gyre {
namespace {

// The keys whose values differ; both tables are of one kind.
std::vector<std::string> changed_keys(const OptionTable& table, const OptionTable& defaults) {
  std::vector<std::string> keys;
  table.each_option([&](const std::string& key, const auto& value, auto&&...) {
    defaults.each_option([&](const std::string& same, const auto& usual, auto&&...) {
      if constexpr (std::is_same_v<decltype(value), decltype(usual)>) {
        if (key == same && value != usual) keys.push_back(key);
      }
    });
  });
  return keys;
}

std::string line(const std::string& table, const std::vector<std::string>& keys, const std::string& why) {
  return fmt::format("[{}] {} {} no effect: {}", table, fmt::join(keys, ", "), keys.size() == 1 ? "has" : "have", why);
}

}  // namespace

std::vector<std::string> settings_without_effect(const Config& config) {
  std::vector<std::string> lines;
  Config original;
  for_each_kind_tables(original, [&](const std::string& name, const KindTables& defaults, const std::string&) {
    for_each_kind_tables(config, [&](const std::string& same, const KindTables& tables, const std::string& chosen) {
      if (same != name) return;
      const char* const choice = name == "pipeline" ? "schedule" : "kind";
      for (const auto& [kind, table] : tables.tables()) {
        const auto keys = kind == chosen ? std::vector<std::string>() : changed_keys(table, defaults.of_kind(kind));
        if (!keys.empty())
          lines.push_back(line(fmt::format("{}.{}", name, kind), keys, fmt::format("{} is {}", choice, chosen)));
      }
    });
  });
  if (config.optimizer.decay != "wsd") {
    std::vector<std::string> keys;
    if (config.optimizer.cooldown != original.optimizer.cooldown) keys.emplace_back("cooldown");
    if (config.optimizer.cooldown_shape != original.optimizer.cooldown_shape) keys.emplace_back("cooldown_shape");
    if (!keys.empty()) lines.push_back(line("optimizer", keys, "decay is " + config.optimizer.decay));
  }
  return lines;
}

}  // namespace gyre
