#include "gyre/tensors/host_memory.h"

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <thread>

namespace gyre {
namespace {

constexpr int64_t kElements = int64_t{1} << 20;
constexpr size_t kBytes = 4 * static_cast<size_t>(kElements);

TEST(HostMemory, LargeTensorsAreCounted) {
  HostMemory memory;
  memory.forget_peak();
  const auto before = memory.bytes();
  {
    const at::Tensor large = at::ones({kElements});
    at::ones({kElements});
    const at::Tensor small = at::ones({16});
    EXPECT_EQ(memory.bytes().live - before.live, kBytes);
    EXPECT_EQ(large.sum().item<double>(), static_cast<double>(kElements));
  }
  EXPECT_EQ(memory.bytes().live, before.live);
  EXPECT_EQ(memory.bytes().peak - before.peak, 2 * kBytes);
  memory.forget_peak();
  EXPECT_EQ(memory.bytes().peak, before.live);
}

TEST(HostMemory, WhatOneThreadFreesServesAnother) {
  HostMemory memory;
  for (int i = 0; i < 20; ++i) std::jthread([] { at::ones({kElements}); });
  const size_t held = memory.bytes().held;
  for (int i = 0; i < 20; ++i) {
    at::Tensor tensor;
    std::jthread([&] { tensor = at::ones({kElements}); }).join();
    std::jthread([&] { tensor.reset(); }).join();
  }
  EXPECT_EQ(memory.bytes().held, held);
}

TEST(HostMemory, TensorsMayOutliveItAndComeFromLibtorchAfterIt) {
  at::Tensor outlives;
  size_t live = 0;
  {
    HostMemory memory;
    live = memory.bytes().live;
    outlives = at::full({kElements}, 3.0);
  }
  EXPECT_EQ(c10::GetCPUAllocator(), c10::GetDefaultCPUAllocator());
  const at::Tensor later = at::ones({kElements});
  EXPECT_EQ(outlives.sum().item<double>(), 3.0 * static_cast<double>(kElements));
  outlives.reset();
  HostMemory memory;
  EXPECT_EQ(memory.bytes().live, live);
}

// Libraries, oneDNN's wrapper among them, take and free memory by its address alone.
TEST(HostMemory, MemoryIsFreedByItsAddress) {
  HostMemory memory;
  const size_t live = memory.bytes().live;
  c10::Allocator& allocator = *c10::GetCPUAllocator();
  for (const size_t bytes : {size_t{0}, size_t{100}, kBytes}) {
    void* const data = allocator.raw_allocate(bytes);
    EXPECT_EQ(memory.bytes().live - live, bytes == kBytes ? kBytes : 0);
    allocator.raw_deallocate(data);
  }
  EXPECT_EQ(memory.bytes().live, live);
}

}  // namespace
}  // namespace gyre
