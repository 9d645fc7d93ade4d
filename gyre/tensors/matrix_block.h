// The matrices of a parameter, for optimizers that work on matrices: the parameter itself, or those stacked in a fused
// one.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gyre/tensors/parameter.h"

namespace gyre {

struct MatrixBlock {
  std::string name;  // the parameter's; a block of a fused one has its number appended: "blocks.0.qkv.weight[1]"
  int64_t first_row = 0, rows = 0, columns = 0;

  // A view of the block's rows in the parameter, or in any tensor of the parameter's shape.
  at::Tensor of(const at::Tensor& parameter) const { return parameter.narrow(0, first_row, rows); }
};

// The blocks of a parameter, from its first row to its last. Empty if it is not a matrix that basis rotation applies to
// (ParameterSpec::rotate); such parameters are left to AdamW.
std::vector<MatrixBlock> matrix_blocks(const ParameterSpec& spec);

}  // namespace gyre
