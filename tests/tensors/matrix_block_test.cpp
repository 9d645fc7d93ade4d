// Tests that the blocks of a fused matrix cover it completely, in order, with names of their own.
#include "gyre/tensors/matrix_block.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace gyre {
namespace {

ParameterSpec spec(std::vector<int64_t> shape, bool rotate, std::vector<int64_t> row_blocks = {}) {
  ParameterSpec made;
  made.name = "qkv.weight";
  made.shape = std::move(shape);
  made.rotate = rotate;
  made.row_blocks = std::move(row_blocks);
  return made;
}

TEST(MatrixBlock, BlocksCoverTheParameter) {
  const at::Tensor weight = at::arange(6 * 5).view({6, 5});
  for (const std::vector<int64_t>& rows : {std::vector<int64_t>{6}, {3, 3}, {2, 2, 2}, {3, 1, 2}}) {
    std::vector<at::Tensor> parts;
    for (const MatrixBlock& block : matrix_blocks(spec({6, 5}, true, rows))) {
      parts.push_back(block.of(weight));
      EXPECT_EQ(parts.back().size(0), block.rows);
      EXPECT_EQ(block.rows, rows[parts.size() - 1]);
      EXPECT_EQ(parts.back().size(1), block.columns);
    }
    EXPECT_EQ(parts.size(), rows.size());
    EXPECT_TRUE(at::cat(parts).equal(weight));
  }
}

TEST(MatrixBlock, AMatrixThatIsNotFusedHasTheParametersName) {
  EXPECT_EQ(matrix_blocks(spec({6, 5}, true))[0].name, "qkv.weight");
  EXPECT_EQ(matrix_blocks(spec({6, 5}, true, {3, 1, 2}))[2].name, "qkv.weight[2]");
}

TEST(MatrixBlock, WhatAdamWHasHasNone) {
  EXPECT_TRUE(matrix_blocks(spec({6, 5}, false)).empty());
  EXPECT_TRUE(matrix_blocks(spec({6}, true)).empty());
}

}  // namespace
}  // namespace gyre
