// Measured layers: accepted ones are written and read back the same.
#include "gyre/plan/measured_layers.h"
#include "fuzz/targets.h"

namespace gyre::fuzz {

void measured_layers(std::string_view input) {
  const auto layers = accepted([&] { return parse_layers(input, "input"); });
  if (layers) require(parse_layers(to_json(*layers).dump(), "written") == *layers, "layers come back the same");
}

}  // namespace gyre::fuzz
