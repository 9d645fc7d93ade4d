// Tensors from a device of one process to a device of another, without the host in between. NCCL is behind it
// (nccl/nccl.cpp); in builds without CUDA there is none (nccl/no_nccl.cpp), and tensors go through the host, in frames.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <memory>
#include <string>
#include <vector>

#include "gyre/runtime/transport/link.h"

namespace gyre {

// One direction between two processes. What is sent must be received in the same order, into tensors of the same sizes
// and types. No call waits for the device or for the other process.
class DeviceChannel {
 public:
  virtual ~DeviceChannel() = default;
  // The message's tensors, which are on this channel's device. Its lease ends behind their sending.
  virtual void send(Message message) = 0;
  // Tensors with the sizes and types of `like`, and the event behind which their values are there.
  virtual Message receive(const std::vector<at::Tensor>& like) = 0;
  // What is under way ends without the other process, which has gone. Any thread.
  virtual void abort() = 0;
};

// Makes the channels of one process, between its device and others'.
class DeviceChannels {
 public:
  virtual ~DeviceChannels() = default;
  virtual at::Device device() const = 0;
  // By which the two ends of a channel know each other: one makes it, and tells the other.
  virtual std::string new_id() = 0;
  // Called by both ends with the same id; returns when both have.
  virtual std::unique_ptr<DeviceChannel> open(const std::string& id, bool sends) = 0;
};

// Null where tensors of this device go through the host.
std::unique_ptr<DeviceChannels> make_device_channels(at::Device device);

}  // namespace gyre
