// Tests streams and events: null on the CPU, and the right calls to c10, in order, on a fake device that only records
// what it is asked for.
#include "gyre/tensors/device.h"

#include <ATen/ATen.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gyre {
namespace {

constexpr auto kMadeUp = c10::DeviceType::PrivateUse1;

// What the fake device was asked for, in order: "record 1" is an event on stream 1.
std::vector<std::string>& calls() {
  static std::vector<std::string> calls;
  return calls;
}

struct MadeUpGuard final : c10::impl::DeviceGuardImplInterface {
  static inline thread_local c10::StreamId current = 0;

  c10::DeviceType type() const override { return kMadeUp; }
  c10::Device exchangeDevice(c10::Device) const override { return getDevice(); }
  c10::Device getDevice() const override { return {kMadeUp, 0}; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream stream(c10::StreamId id) const { return c10::Stream(c10::Stream::UNSAFE, getDevice(), id); }
  c10::Stream getStream(c10::Device) const noexcept override { return stream(current); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool high_priority) const override {
    return stream(high_priority ? 7 : 3);
  }
  c10::Stream exchangeStream(c10::Stream next) const noexcept override {
    return stream(std::exchange(current, next.id()));
  }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void destroyEvent(void*, c10::DeviceIndex) const noexcept override {}
  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
    *event = &calls();
    calls().push_back("record " + std::to_string(stream.id()));
  }
  void block(void*, const c10::Stream& stream) const override {
    calls().push_back("block " + std::to_string(stream.id()));
  }
  bool queryEvent(void*) const override { return true; }
  void synchronizeStream(const c10::Stream& stream) const override {
    calls().push_back("synchronize " + std::to_string(stream.id()));
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, MadeUpGuard);

TEST(Device, TheCpuHasNoStreamsAndItsEventsAreNull) {
  for (const at::Device device : {at::Device(at::kCPU), at::Device(at::kMeta)}) {
    EXPECT_FALSE(make_stream(device));
    EXPECT_FALSE(DeviceEvent::record(device));
    const StreamScope scope(make_stream(device));
    DeviceEvent::record(device).block(device);
    DeviceEvent::record(device).wait();
  }
  const at::Tensor tensor = at::ones({3});
  EXPECT_TRUE(on_device(tensor, host()).is_same(tensor)) << "nothing is copied";
  EXPECT_FALSE(on_device({}, host()).defined());
}

TEST(Device, WorkBehindAnEventWaitsInItsStreamAndTheThreadGoesOn) {
  calls().clear();
  const at::Device device(kMadeUp, 0);
  DeviceEvent event;
  {
    const StreamScope scope(c10::Stream(c10::Stream::UNSAFE, device, 1));
    event = DeviceEvent::record(device);
  }
  EXPECT_TRUE(event);
  {
    const StreamScope scope(c10::Stream(c10::Stream::UNSAFE, device, 2));
    event.block(device);
  }
  EXPECT_THAT(calls(), ::testing::ElementsAre("record 1", "block 2"));
  EXPECT_EQ(MadeUpGuard::current, 0) << "a scope leaves the thread's stream as it was";
}

TEST(Device, WhatIsDoneBesideTheWorkersHasStreamsOfAnotherPool) {
  const at::Device device(kMadeUp, 0);
  EXPECT_EQ(make_stream(device)->id(), 3);
  EXPECT_EQ(make_side_stream(device)->id(), 7);
  EXPECT_FALSE(make_side_stream(host()));
}

TEST(Device, AThreadThatWaitsWaitsBehindTheEvent) {
  calls().clear();
  const at::Device device(kMadeUp, 0);
  DeviceEvent::record(device).wait();
  EXPECT_THAT(calls(), ::testing::ElementsAre("record 0", "block 7", "synchronize 7"));
  calls().clear();
  DeviceEvent::record(device).block(host());  // the host has no stream that could wait
  EXPECT_THAT(calls(), ::testing::ElementsAre("record 0", "block 7", "synchronize 7"));
}

}  // namespace
}  // namespace gyre
