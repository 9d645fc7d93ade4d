#include "gyre/tensors/explain_torch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <new>

namespace gyre {
namespace {

std::string explained(const std::string& what) {
  try {
    TORCH_CHECK(false, what);
  } catch (const std::exception& error) {
    return explain_torch(error);
  }
}

TEST(ExplainTorch, MemoryThatADeviceHasNotIsOneLineAsTheHostsIs) {
  const std::string remedy = "; make [pipeline] microbatch, [model] context or the model smaller";
  EXPECT_EQ(
      explained("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4294967296 bytes. Error code 12"),
      "out of memory: 4.0 GiB for one tensor cannot be had" + remedy);
  // As libtorch 1.13 and 2.x say it.
  EXPECT_EQ(
      explained("CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 7.80 GiB total capacity; 6.34 GiB already "
                "allocated; 2.00 MiB free) If reserved memory is >> allocated memory try setting max_split_size_mb"),
      "out of memory: 20.00 MiB for one tensor cannot be had on GPU 1" + remedy);
  EXPECT_EQ(
      explained("CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.15 GiB of which "
                "1.20 GiB is free."),
      "out of memory: 2.50 GiB for one tensor cannot be had on GPU 0" + remedy);
  EXPECT_EQ(explained("CUDA error: device-side assert triggered\nCUDA kernel errors might be reported later"),
            "unexpected failure: CUDA error: device-side assert triggered");
  EXPECT_EQ(explain_torch(std::bad_alloc()), "out of memory" + remedy);
  EXPECT_EQ(explain_torch(std::bad_alloc(), "free some"), "out of memory; free some");
}

}  // namespace
}  // namespace gyre
