// Streams and events of any device, which order work that the device was given but may not have done yet. They are
// c10's generic ones, so no device's own headers are needed. On the CPU work is done when a function returns, so
// streams and events are null there and cost nothing.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gyre {

// The device on which the program itself reads values: the CPU.
inline at::Device host() {
  return at::kCPU;
}

// Whether the device works asynchronously: all devices except CPU and meta.
bool has_streams(at::Device device);

// The device of a name like "cpu", "cuda" or "cuda:1": the CPU, or one of the types that have streams (CUDA's, XPU's,
// and that of a program's own). Throws InputError for others.
at::Device device_named(const std::string& name);
// The device with its number: "cuda" alone means the current one. Throws InputError if there is no such device.
at::Device find_device(at::Device device);
// How many devices of this type there are; 0 if libtorch was built without it.
int device_count(c10::DeviceType type);
// All devices that are here, except the CPU.
std::vector<at::Device> all_devices();

// From now on libtorch computes on devices with streams by functions that give the same bits every time, and throws
// where it has none. To be called before a device is used.
void use_deterministic_functions();
// Loads libtorch's linear algebra for CUDA, if the device is one of CUDA's and it is not there yet. Left alone,
// libtorch does so at the first use, and throws if two threads use it first at the same time. Any thread.
void load_linear_algebra(at::Device device);

// A stream of the device; null if it has none.
std::optional<c10::Stream> make_stream(at::Device device);
// A stream for work beside the workers, never one of theirs. Streams come in turn from a pool of some tens, and users
// of the same stream wait for each other; these come from a second pool.
std::optional<c10::Stream> make_side_stream(at::Device device);

// While it lives, this thread's work for the stream's device goes to this stream.
class StreamScope {
 public:
  explicit StreamScope(const std::optional<c10::Stream>& stream) {
    if (stream) guard_.emplace(*stream);
  }

 private:
  std::optional<c10::StreamGuard> guard_;
};

// A point in a stream. Copies are the same point; a null event is always past.
class DeviceEvent {
 public:
  DeviceEvent() = default;
  // The point after all work that this thread has given to the device's current stream so far.
  static DeviceEvent record(at::Device device);
  // The same, and the device keeps the time when it comes there.
  static DeviceEvent record_with_time(at::Device device);

  explicit operator bool() const { return event_ != nullptr; }
  // Whether the device has come there.
  bool is_past() const;
  // Orders all later work of this thread on `device` after the event. The thread itself does not wait, unless the event
  // belongs to another type of device.
  void block(at::Device device) const;
  // Blocks this thread until the event.
  void wait() const;
  // Whether libtorch's events keep times, as since 2.4.
  static bool keep_times();
  // Seconds on the device from `earlier` until here. Both must be past, of one device, and recorded with their times.
  double seconds_since(const DeviceEvent& earlier) const;

 private:
  static DeviceEvent record(at::Device device, c10::EventFlag flag);

  std::shared_ptr<const c10::Event> event_;
};

// `tensor` on `device`, copied if it is elsewhere, for this thread's later work there. Its value is valid after
// `ready`.
at::Tensor on_device(const at::Tensor& tensor, at::Device device, const DeviceEvent& ready = {});

}  // namespace gyre
