#include "gyre/plan/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "gyre/core/error.h"

namespace gyre {

std::vector<LayerRange> partition_by_cost(std::span<const double> costs, int stages) {
  const int layers = static_cast<int>(costs.size());
  if (stages < 1 || stages > layers) {
    throw InputError(
        fmt::format("{} layers cannot be cut into {} stages; give 1 to {} stages", layers, stages, layers));
  }
  std::vector<double> before(layers + 1, 0);  // cost of the layers before each
  for (int layer = 0; layer < layers; ++layer) before[layer + 1] = before[layer] + costs[layer];

  // best[s][l]: the best cut of the first l layers into s stages.
  struct Cut {
    double costliest = std::numeric_limits<double>::infinity();
    double squares = std::numeric_limits<double>::infinity();
    int begin = -1;  // of the last stage
    bool operator<(const Cut& other) const {
      return costliest != other.costliest ? costliest < other.costliest : squares < other.squares;
    }
  };
  std::vector<std::vector<Cut>> best(stages + 1, std::vector<Cut>(layers + 1));
  best[0][0] = {0, 0, -1};
  for (int stage = 1; stage <= stages; ++stage) {
    for (int end = stage; end <= layers; ++end) {
      for (int begin = stage - 1; begin < end; ++begin) {
        const double cost = before[end] - before[begin];
        const Cut& rest = best[stage - 1][begin];
        const Cut cut{std::max(rest.costliest, cost), rest.squares + cost * cost, begin};
        if (cut < best[stage][end]) best[stage][end] = cut;
      }
    }
  }

  std::vector<LayerRange> ranges(stages);
  for (int stage = stages, end = layers; stage > 0; --stage) {
    const int begin = best[stage][end].begin;
    ranges[stage - 1] = {begin, end};
    end = begin;
  }
  return ranges;
}

}  // namespace gyre
