#include "gyre/optim/state_bytes.h"

#include <algorithm>

#include "gyre/optim/basis_rotation.h"
#include "gyre/tensors/matrix_block.h"

namespace gyre {
namespace {

constexpr double kFloat = 4;

// One side of a rotated matrix: its coordinates, and what its basis keeps.
struct Side {
  double coordinates;
  double bytes = 0;
};

Side side_of(const BasisRotationSettings& config, int64_t size, int64_t other, bool rotated) {
  const auto length = static_cast<double>(size);
  const int64_t directions = rotated ? rotated_directions(config, size, other) : 0;
  if (directions == 0) return {length};
  const bool is_sketch = directions < size;
  const double basis = length * static_cast<double>(directions) * kFloat;
  const double source = config.source == "second" ? basis : static_cast<double>(directions) * kFloat;
  const double probe = is_sketch ? basis : 0;
  return {length + (is_sketch ? static_cast<double>(directions) : 0), basis + source + probe};
}

double rotated_block(const BasisRotationSettings& config, int64_t rows, int64_t columns) {
  const bool both = config.geometry == "bilateral";
  const Side left = side_of(config, rows, columns, both || rows <= columns);
  const Side right = side_of(config, columns, rows, both || rows > columns);
  const double ahead = config.look_ahead > 0 ? static_cast<double>(rows) * static_cast<double>(columns) * kFloat : 0;
  return left.bytes + right.bytes + 2 * left.coordinates * right.coordinates * kFloat + ahead;
}

double elements_of(const ParameterSpec& spec) {
  double elements = 1;
  for (const int64_t size : spec.shape) elements *= static_cast<double>(size);
  return elements;
}

}  // namespace

double adam_bytes(const OptimizerConfig&, const ParameterSpec& spec) {
  return 2 * elements_of(spec) * kFloat;  // two moments
}

double rotation_bytes(const OptimizerConfig& config, const ParameterSpec& spec) {
  const std::vector<MatrixBlock> blocks = matrix_blocks(spec);
  if (blocks.empty()) return adam_bytes(config, spec);
  const auto settings = config.own.get<BasisRotationSettings>();
  double bytes = 0;
  for (const MatrixBlock& block : blocks) bytes += rotated_block(settings, block.rows, block.columns);
  return bytes;
}

double muon_bytes(const OptimizerConfig& config, const ParameterSpec& spec) {
  return matrix_blocks(spec).empty() ? adam_bytes(config, spec) : elements_of(spec) * kFloat;  // the momentum
}

double error_feedback_bytes(const OptimizerConfig& config, const ParameterSpec& spec) {
  return adam_bytes(config, spec) + elements_of(spec) * kFloat;  // and the last step
}

double optimizer_state_bytes(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs) {
  const OptimizerMaker& maker = optimizer_makers().at(config.kind);
  double bytes = 0;
  for (const ParameterSpec& spec : specs) bytes += maker.state_bytes(config, spec);
  return bytes;
}

}  // namespace gyre
