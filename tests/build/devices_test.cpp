// Which device a worker gets, with made-up devices in the place of GPUs.
#include "gyre/build/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/tensors/device.h"
#include "runtime/made_up_device.h"

namespace gyre {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::made_up::kDevices;

Config config_on(const std::string& device) {
  Config config;
  config.pipeline.device = device;
  return config;
}

// Numbers of the devices of this process's workers.
std::vector<int> numbers(WorkerRange here, int workers, HostProcess process, const std::string& device) {
  const auto devices = worker_devices(config_on(device), workers, here, process);
  std::vector<int> numbers;
  for (int worker = here.begin; worker < here.end; ++worker) {
    numbers.push_back(devices.at(static_cast<size_t>(worker)).index());
  }
  return numbers;
}
std::vector<int> numbers(int workers, const std::string& device = "privateuseone") {
  return numbers({0, workers}, workers, {}, device);
}

std::string complaint(const std::string& device) {
  try {
    run_device(config_on(device));
  } catch (const InputError& error) {
    return error.what();
  }
  return "found";
}

TEST(Devices, TheCpuNeedsNone) {
  EXPECT_TRUE(worker_devices(config_on("cpu"), 4, {}, {}).empty());
}

TEST(Devices, WorkersOfOneProcessShareAllNeighboursTogether) {
  ASSERT_EQ(kDevices, 8);
  EXPECT_THAT(numbers(1), ElementsAre(0));
  EXPECT_THAT(numbers(3), ElementsAre(0, 1, 2));
  EXPECT_THAT(numbers(8), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(numbers(12), ElementsAre(0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7));
  EXPECT_THAT(numbers(3, "privateuseone:5"), ElementsAre(5, 5, 5));
}

// All workers, eight devices: no device is given to two processes while another is free, and none is left out.
TEST(Devices, ProcessesOfAHostHaveSharesOfTheirOwn) {
  const std::string all = "privateuseone";
  EXPECT_THAT(numbers({0, 2}, 4, {0, 2}, all), ElementsAre(0, 1));
  EXPECT_THAT(numbers({2, 4}, 4, {1, 2}, all), ElementsAre(4, 5));
  EXPECT_THAT(numbers({3, 6}, 9, {1, 3}, all), ElementsAre(2, 3, 4));
  EXPECT_THAT(numbers({6, 9}, 9, {2, 3}, all), ElementsAre(5, 6, 7));
  for (int process = 0; process < 8; ++process) {
    EXPECT_THAT(numbers({process, process + 1}, 8, {process, 8}, all), ElementsAre(process));
  }
  EXPECT_THAT(numbers({5, 6}, 16, {5, 16}, all), ElementsAre(2)) << "two processes for each";
}

TEST(Devices, WhatIsNotThereIsToldWithWhatToDo) {
  EXPECT_EQ(complaint("cpu"), "found");
  EXPECT_EQ(complaint("privateuseone:7"), "found");
  for (const char* wrong : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:99999", "meta", "vulkan", "CPU"}) {
    const std::string told = complaint(wrong);
    EXPECT_THAT(told, HasSubstr("[pipeline] device: '" + std::string(wrong) + "' is not a device")) << wrong;
    EXPECT_EQ(told.find('\n'), std::string::npos) << told;
  }
  EXPECT_THAT(complaint("privateuseone:8"), HasSubstr("8 are seen here"));
  EXPECT_THAT(complaint("xpu"), HasSubstr("there is no xpu"));
  EXPECT_THAT(complaint("xpu"), HasSubstr("gyre info"));
}

TEST(Devices, AllAreListed) {
  int made_up = 0;
  for (const at::Device device : all_devices()) made_up += device.type() == testing_support::made_up::kType ? 1 : 0;
  EXPECT_EQ(made_up, kDevices);
}

}  // namespace
}  // namespace gyre
