// Blocks of a fused matrix are all of it, in order, under names of their own.
#include "gyre/tensors/matrix_block.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace gyre {
namespace {

ParameterSpec spec(std::vector<int64_t> shape, bool rotate, int row_blocks = 1) {
  ParameterSpec made;
  made.name = "qkv.weight";
  made.shape = std::move(shape);
  made.rotate = rotate;
  made.row_blocks = row_blocks;
  return made;
}

TEST(MatrixBlock, BlocksCoverTheParameter) {
  const at::Tensor weight = at::arange(6 * 5).view({6, 5});
  for (const int count : {1, 2, 3}) {
    std::vector<at::Tensor> parts;
    for (const MatrixBlock& block : matrix_blocks(spec({6, 5}, true, count))) {
      parts.push_back(block.of(weight));
      EXPECT_EQ(parts.back().size(0), block.rows);
      EXPECT_EQ(parts.back().size(1), block.columns);
    }
    EXPECT_EQ(parts.size(), static_cast<size_t>(count));
    EXPECT_TRUE(at::cat(parts).equal(weight));
  }
}

TEST(MatrixBlock, OneBlockHasTheParametersName) {
  EXPECT_EQ(matrix_blocks(spec({6, 5}, true))[0].name, "qkv.weight");
  EXPECT_EQ(matrix_blocks(spec({6, 5}, true, 3))[2].name, "qkv.weight[2]");
}

TEST(MatrixBlock, WhatAdamWHasHasNone) {
  EXPECT_TRUE(matrix_blocks(spec({6, 5}, false)).empty());
  EXPECT_TRUE(matrix_blocks(spec({6}, true)).empty());
}

}  // namespace
}  // namespace gyre
