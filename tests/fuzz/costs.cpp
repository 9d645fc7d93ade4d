// Cost files: an accepted one is written and read back the same.
#include "fuzz/targets.h"
#include "gyre/simulate/cost_model.h"

namespace gyre::fuzz {

void costs(std::string_view input) {
  const auto costs = accepted([&] { return parse_costs(input, "input"); });
  if (costs) require(parse_costs(to_json(*costs), "written") == *costs, "costs come back the same");
}

}  // namespace gyre::fuzz
