#include "gyre/optim/state_bytes.h"

#include <algorithm>

#include "gyre/optim/basis_rotation.h"

namespace gyre {
namespace {

constexpr double kFloat = 4;

// One side of a rotated matrix: its coordinates, and what its basis keeps.
struct Side {
  double coordinates;
  double bytes = 0;
};

Side side_of(const OptimizerConfig& config, int64_t size, int64_t other, bool rotated) {
  const auto length = static_cast<double>(size);
  const int64_t directions = rotated ? rotated_directions(config, size, other) : 0;
  if (directions == 0) return {length};
  const bool is_sketch = directions < size;
  const double basis = length * static_cast<double>(directions) * kFloat;
  const double source = config.source == "second" ? basis : static_cast<double>(directions) * kFloat;
  const double probe = is_sketch ? basis : 0;
  return {length + (is_sketch ? static_cast<double>(directions) : 0), basis + source + probe};
}

double rotated_block(const OptimizerConfig& config, int64_t rows, int64_t columns) {
  const bool both = config.geometry == "bilateral";
  const Side left = side_of(config, rows, columns, both || rows <= columns);
  const Side right = side_of(config, columns, rows, both || rows > columns);
  const double ahead = config.look_ahead > 0 ? static_cast<double>(rows) * static_cast<double>(columns) * kFloat : 0;
  return left.bytes + right.bytes + 2 * left.coordinates * right.coordinates * kFloat + ahead;
}

}  // namespace

double optimizer_state_bytes(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs) {
  double bytes = 0;
  for (const ParameterSpec& spec : specs) {
    double elements = 1;
    for (const int64_t size : spec.shape) elements *= static_cast<double>(size);
    const bool is_matrix = spec.rotate && spec.shape.size() == 2;
    if (config.kind == "basis-rotation" && is_matrix) {
      bytes += spec.row_blocks * rotated_block(config, spec.shape[0] / spec.row_blocks, spec.shape[1]);
    } else if (config.kind == "muon" && is_matrix) {
      bytes += elements * kFloat;  // the momentum
    } else if (config.kind == "error-feedback") {
      bytes += 3 * elements * kFloat;  // two moments and the last step
    } else {
      bytes += 2 * elements * kFloat;  // two moments
    }
  }
  return bytes;
}

}  // namespace gyre
