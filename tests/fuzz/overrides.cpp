// Overrides of a configuration, one per line of the input.
#include "fuzz/targets.h"
#include "gyre/config/config.h"

namespace gyre::fuzz {

void overrides(std::string_view input) {
  std::vector<std::string> texts;
  while (!input.empty()) {
    const size_t end = std::min(input.find('\n'), input.size());
    texts.emplace_back(input.substr(0, end));
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  const std::string base = "[data]\ntokens = \"here\"\n";
  const auto config = accepted([&] { return parse_config(base, "input", texts); });
  if (config) require(parse_config(to_toml(*config), "written", {}) == *config, "a configuration comes back the same");
}

}  // namespace gyre::fuzz
