// Configurations: to_toml writes everything that was read.
#include "gyre/config/config.h"

#include "fuzz/targets.h"

namespace gyre::fuzz {

void config(std::string_view input) {
  const auto config = accepted([&] { return parse_config(input, "input", {}); });
  if (config) require(parse_config(to_toml(*config), "written", {}) == *config, "a configuration comes back the same");
}

}  // namespace gyre::fuzz
