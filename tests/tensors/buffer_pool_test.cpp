// Tests pooled buffers: they are reused once nobody holds or reads them, never before, on whatever thread a lease ends.
#include "gyre/tensors/buffer_pool.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

namespace gyre {
namespace {

std::vector<ParameterSpec> specs() {
  ParameterSpec a, b;
  a.shape = {3, 5};
  b.shape = {7};
  return {a, b};
}

TEST(BufferPool, ABufferIsFreeOnceItIsLetGoAndEveryLeaseHasEnded) {
  BufferPool pool(specs(), at::kFloat, at::kCPU);
  std::optional<PooledBuffer> buffer = pool.take();
  const void* memory = (*buffer)->flat.data_ptr();
  EXPECT_FALSE(buffer->is_lent());
  Lease first = buffer->lend(), second = buffer->lend();
  Lease copy = first;
  EXPECT_TRUE(buffer->is_lent());
  buffer.reset();
  EXPECT_EQ(pool.live(), 1u);
  EXPECT_NE(pool.take()->flat.data_ptr(), memory);
  first.reset();
  second.reset();
  EXPECT_NE(pool.take()->flat.data_ptr(), memory) << "a copy of a lease is the lease";
  copy.reset();
  EXPECT_EQ(pool.live(), 0u);
  EXPECT_EQ(pool.take()->flat.data_ptr(), memory);
}

TEST(BufferPool, ALeaseThatHasEndedLeavesTheHolderAlone) {
  BufferPool pool(specs(), at::kFloat, at::kCPU);
  const PooledBuffer buffer = pool.take();
  { const Lease lease = buffer.lend(); }
  EXPECT_FALSE(buffer.is_lent());
  EXPECT_EQ(pool.live(), 1u);
}

TEST(BufferPool, NewOnesAreZeroAndUsedOnesAsTheyWereLeft) {
  BufferPool pool(specs(), at::kFloat, at::kCPU);
  {
    const PooledBuffer buffer = pool.take();
    EXPECT_EQ(buffer->flat.sum().item<double>(), 0);
    buffer->flat.fill_(3);
  }
  EXPECT_EQ(pool.take()->flat.sum().item<double>(), 3 * 64);
}

TEST(BufferPool, LeasesOutliveThePoolAndEndOnAnyThread) {
  std::optional<BufferPool> pool(std::in_place, specs(), at::kFloat, at::kCPU);
  for (int round = 0; round < 200; ++round) {
    PooledBuffer buffer = pool->take();
    buffer->flat.fill_(round);
    std::jthread reader([tensor = buffer->tensors[0], lease = buffer.lend(), round] {
      EXPECT_EQ(tensor.sum().item<double>(), 15.0 * round);
    });
    buffer = {};
    if (round == 199) pool.reset();
  }
}

}  // namespace
}  // namespace gyre
