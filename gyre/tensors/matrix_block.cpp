#include "gyre/tensors/matrix_block.h"

#include <fmt/format.h>

#include <cassert>

namespace gyre {

std::vector<MatrixBlock> matrix_blocks(const ParameterSpec& spec) {
  std::vector<MatrixBlock> blocks;
  if (!spec.rotate || spec.shape.size() != 2) return blocks;
  const int64_t columns = spec.shape[1];
  if (spec.row_blocks.empty()) return {{spec.name, 0, spec.shape[0], columns}};
  int64_t first_row = 0;
  for (const int64_t rows : spec.row_blocks) {
    blocks.push_back({fmt::format("{}[{}]", spec.name, blocks.size()), first_row, rows, columns});
    first_row += rows;
  }
  assert(first_row == spec.shape[0]);
  return blocks;
}

}  // namespace gyre
