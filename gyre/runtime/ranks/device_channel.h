// Sends tensors from a device of one process to a device of another, without going through the host. It is implemented
// with NCCL (nccl/nccl.cpp). Builds without CUDA have none (nccl/no_nccl.cpp): tensors go through the host, in frames.
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
  // Sends the message's tensors, which are on this channel's device. Its lease ends once they are sent, in the order of
  // the channel's stream.
  virtual void send(Message message) = 0;
  // Tensors with the sizes and types of `like`, and the event after which their values are there.
  virtual Message receive(const std::vector<at::Tensor>& like) = 0;
  // Ends what is under way without the other process, which has gone. Any thread.
  virtual void abort() = 0;
};

// Makes the channels between this process's device and those of others.
class DeviceChannels {
 public:
  virtual ~DeviceChannels() = default;
  virtual at::Device device() const = 0;
  // Which device it is, among all of all hosts. Two processes that share one have no channel between them.
  virtual std::string identity() const = 0;
  // The id by which the two ends of a channel find each other: one end makes it, and sends it to the other.
  virtual std::string new_id() = 0;
  // Called by both ends with the same id; returns when both have called it.
  virtual std::unique_ptr<DeviceChannel> open(const std::string& id, bool sends) = 0;
};

// Null if tensors of this device go through the host. Else pairs of processes that have no links, or one device, open
// no channels.
std::unique_ptr<DeviceChannels> make_device_channels(at::Device device);

}  // namespace gyre
