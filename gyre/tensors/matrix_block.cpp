#include "gyre/tensors/matrix_block.h"

#include <fmt/format.h>

namespace gyre {

std::vector<MatrixBlock> matrix_blocks(const ParameterSpec& spec) {
  std::vector<MatrixBlock> blocks;
  if (!spec.rotate || spec.shape.size() != 2) return blocks;
  const int64_t rows = spec.shape[0] / spec.row_blocks;
  for (int block = 0; block < spec.row_blocks; ++block) {
    blocks.push_back({spec.row_blocks == 1 ? spec.name : fmt::format("{}[{}]", spec.name, block), block * rows, rows,
                      spec.shape[1]});
  }
  return blocks;
}

}  // namespace gyre
