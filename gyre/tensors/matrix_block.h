// The matrices that optimizers of matrices find in a parameter: the parameter itself, or those that a fused one stacks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gyre/tensors/parameter.h"

namespace gyre {

struct MatrixBlock {
  std::string name;  // the parameter's; of several blocks each has its number behind it, "blocks.0.qkv.weight[1]"
  int64_t first_row = 0, rows = 0, columns = 0;

  // The block's rows of the parameter, or of anything of its shape: a view.
  at::Tensor of(const at::Tensor& parameter) const { return parameter.narrow(0, first_row, rows); }
};

// Those of a parameter, from its first row to its last; none where it is left to AdamW.
std::vector<MatrixBlock> matrix_blocks(const ParameterSpec& spec);

}  // namespace gyre
