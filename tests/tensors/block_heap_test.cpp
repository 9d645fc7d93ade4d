#include "gyre/tensors/block_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gyre/core/random.h"

namespace gyre {
namespace {

struct Block {
  void* data;
  size_t bytes;
  unsigned char mark;
};

bool is_whole(const Block& block) {
  const auto* bytes = static_cast<const unsigned char*>(block.data);
  return std::all_of(bytes, bytes + block.bytes, [&](unsigned char byte) { return byte == block.mark; });
}

TEST(BlockHeap, BlocksThatComeAndGoNeverOverlapAndBecomeOnePieceAgain) {
  BlockHeap heap;
  RandomStream random(3, StreamPurpose::Test, 0);
  std::vector<Block> blocks;
  size_t live = 0, most = 0;
  for (int step = 0; step < 4000; ++step) {
    if (blocks.size() < 40 && random.below(2) == 0) {
      const size_t bytes = 1 + random.below(uint64_t{1} << (4 + random.below(17)));
      void* const data = heap.take(bytes);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
      blocks.push_back({data, bytes, static_cast<unsigned char>(step)});
      std::memset(data, blocks.back().mark, bytes);
      live += bytes;
      most = std::max(most, live);
    } else if (!blocks.empty()) {
      std::swap(blocks[random.below(blocks.size())], blocks.back());
      ASSERT_TRUE(is_whole(blocks.back()));
      heap.give_back(blocks.back().data, blocks.back().bytes);
      live -= blocks.back().bytes;
      blocks.pop_back();
    }
  }
  for (const Block& block : blocks) heap.give_back(block.data, block.bytes);
  const size_t held = heap.held();
  EXPECT_LT(held, most + most / 4 + (size_t{2} << 20));
  ASSERT_NE(heap.take(held), nullptr);
  EXPECT_EQ(heap.held(), held);  // the free memory was one piece
}

// Allocates like a schedule: the same sizes every time, two of them overlapping.
TEST(BlockHeap, WhatComesAgainTakesNoMore) {
  BlockHeap heap;
  constexpr size_t kUnit = 786432;
  std::vector<Block> before;
  size_t held = 0;
  for (int time = 0; time < 50; ++time) {
    std::vector<Block> now;
    for (int i = 0; i < 12; ++i) {
      const size_t bytes = kUnit * (i % 3 == 0 ? 4 : 1);
      now.push_back({heap.take(bytes), bytes, 0});
      void* const passing = heap.take(3 * kUnit);
      heap.give_back(passing, 3 * kUnit);
    }
    for (const Block& block : before) heap.give_back(block.data, block.bytes);
    before = now;
    if (time == 2) held = heap.held();
  }
  EXPECT_EQ(heap.held(), held);
  EXPECT_LT(heap.held(), 2 * 24 * kUnit + 6 * kUnit);
  for (const Block& block : before) heap.give_back(block.data, block.bytes);
}

// Logits are allocated and freed once per microbatch; small blocks are allocated meanwhile and stay.
TEST(BlockHeap, SmallBlocksDoNotTakeThePlaceOfALargeOne) {
  BlockHeap heap;
  constexpr size_t kUnit = size_t{1} << 20;
  heap.give_back(heap.take(70 * kUnit), 70 * kUnit);
  const size_t held = heap.held();
  void* const small = heap.take(kUnit);
  void* const large = heap.take(40 * kUnit);
  void* const beside = heap.take(3 * kUnit);
  heap.give_back(large, 40 * kUnit);
  void* const later = heap.take(2 * kUnit);
  EXPECT_EQ(heap.take(40 * kUnit), large);
  EXPECT_EQ(heap.held(), held);
  EXPECT_LT(small, beside);
  EXPECT_LT(beside, later);
  EXPECT_LT(later, large);
}

TEST(BlockHeap, WhatTheSystemHasNotIsNull) {
  BlockHeap heap;
  EXPECT_EQ(heap.take(size_t{1} << 50), nullptr);
  void* const block = heap.take(100);
  ASSERT_NE(block, nullptr);
  heap.give_back(block, 100);
}

}  // namespace
}  // namespace gyre
