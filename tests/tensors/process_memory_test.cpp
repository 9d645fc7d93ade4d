// Tests that the reported memory of the process follows what it allocates and frees.
#include "gyre/tensors/process_memory.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "gyre/tensors/device.h"
#include "gyre/tensors/device_memory.h"
#include "gyre/tensors/host_memory.h"

namespace gyre {
namespace {

constexpr int64_t kBytes = int64_t{64} << 20;

TEST(ProcessMemory, FollowsLargeTensors) {
  HostMemory memory;
  const ProcessMemory before = ProcessMemory::now();
  at::Tensor large = at::ones({kBytes}, at::kByte);
  const ProcessMemory with = ProcessMemory::now();
  EXPECT_EQ(with.tensors - before.tensors, kBytes);
  EXPECT_GE(with.peak_tensors, with.tensors);
  EXPECT_GT(with.resident - before.resident, kBytes / 2);
  EXPECT_GE(with.peak_resident,
            with.resident - (int64_t{1} << 20));  // the system updates each thread's page counts with a delay
  large.reset();
  const ProcessMemory after = ProcessMemory::now();
  EXPECT_EQ(after.tensors, before.tensors);
  EXPECT_GE(after.peak_tensors, kBytes);
  EXPECT_GE(after.peak_resident, with.peak_resident);
}

TEST(ProcessMemory, FollowsTensorsOnADeviceWhereItTells) {
  for (const at::Device device : all_devices()) {
    const auto before = device_memory(device);
    if (!before) continue;
    EXPECT_GE(before->total, kBytes);
    const at::Tensor large = at::ones({kBytes}, at::TensorOptions(at::kByte).device(device));
    const auto after = device_memory(device);
    if (after->tensors == 0) GTEST_SKIP() << "this libtorch does not count tensors there";
    EXPECT_EQ(after->tensors - before->tensors, kBytes);
    const ProcessMemory with = ProcessMemory::now(device);
    EXPECT_EQ(with.tensors, after->tensors);
    EXPECT_GE(with.peak_tensors, with.tensors);
  }
  EXPECT_FALSE(device_memory(at::kCPU));
}

TEST(ProcessMemory, TensorsThatNobodyCountsAreNone) {
  EXPECT_FALSE(HostMemory::of_process());
  const ProcessMemory memory = ProcessMemory::now();
  EXPECT_EQ(memory.peak_tensors, 0);
  EXPECT_GT(memory.peak_resident, 0);
}

}  // namespace
}  // namespace gyre
