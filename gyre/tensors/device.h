// Streams and events of any device: the order of the work that it was given and may not have done yet. They are c10's
// generic ones, so no device's own headers are needed. The CPU has done its work when a function returns: there streams
// and events are null, and cost nothing.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include <memory>
#include <optional>

namespace gyre {

// Where numbers are read by the program itself.
inline at::Device host() {
  return at::kCPU;
}

// Whether the device does its work later than it is given.
bool has_streams(at::Device device);

// A stream of the device; null where it has none.
std::optional<c10::Stream> make_stream(at::Device device);

// While it lives, what this thread gives to the stream's device goes to the stream.
class StreamScope {
 public:
  explicit StreamScope(const std::optional<c10::Stream>& stream) {
    if (stream) guard_.emplace(*stream);
  }

 private:
  std::optional<c10::StreamGuard> guard_;
};

// A point in a stream. Copies are the same point; null is one that is past.
class DeviceEvent {
 public:
  DeviceEvent() = default;
  // Behind all that this thread has given to the device so far (to its current stream).
  static DeviceEvent record(at::Device device);

  explicit operator bool() const { return event_ != nullptr; }
  // What this thread gives to `device` from now on is done after the event. The thread itself goes on.
  void block(at::Device device) const;
  // This thread waits.
  void wait() const;

 private:
  std::shared_ptr<const c10::Event> event_;
};

// `tensor`, whose value is there after `ready`, for this thread's work on `device`.
at::Tensor on_device(const at::Tensor& tensor, at::Device device, const DeviceEvent& ready = {});

}  // namespace gyre
