#include "gyre/tensors/device.h"

#include <ATen/ATen.h>

#include <utility>

namespace gyre {
namespace {

c10::Stream current_stream(at::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

}  // namespace

bool has_streams(at::Device device) {
  return !device.is_cpu() && !device.is_meta();
}

std::optional<c10::Stream> make_stream(at::Device device) {
  if (!has_streams(device)) return std::nullopt;
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

DeviceEvent DeviceEvent::record(at::Device device) {
  DeviceEvent recorded;
  if (!has_streams(device)) return recorded;
  auto event = std::make_shared<c10::Event>(device.type());
  event->record(current_stream(device));
  recorded.event_ = std::move(event);
  return recorded;
}

void DeviceEvent::block(at::Device device) const {
  if (!event_) return;
  if (device.type() == event_->device_type()) {
    event_->block(current_stream(device));
  } else {
    wait();
  }
}

void DeviceEvent::wait() const {
  if (!event_) return;
  // Events of libtorch 1.13 cannot be waited for, but a stream that is blocked by one can be synchronised.
  const auto stream = make_stream(event_->device());
  event_->block(*stream);
  stream->synchronize();
}

at::Tensor on_device(const at::Tensor& tensor, at::Device device, const DeviceEvent& ready) {
  if (!tensor.defined()) return tensor;
  ready.block(device);
  if (tensor.device() == device) {
    // The allocator must not reuse its memory before this thread's stream is done with it.
    if (has_streams(device)) tensor.record_stream(current_stream(device));
    return tensor;
  }
  ready.block(tensor.device());
  return tensor.to(device);
}

}  // namespace gyre
