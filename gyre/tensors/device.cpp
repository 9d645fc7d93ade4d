#include "gyre/tensors/device.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "gyre/core/error.h"

namespace gyre {
namespace {

// Whether libtorch hands out streams for devices of this type. Of others it knows, some only seem to be there.
bool has_stream_pool(c10::DeviceType type) {
  return type == c10::DeviceType::CUDA || type == c10::DeviceType::XPU || type == c10::DeviceType::PrivateUse1;
}

bool is_built_in(c10::DeviceType type) {
  return has_stream_pool(type) && c10::impl::hasDeviceGuardImpl(type);
}

c10::Stream current_stream(at::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

c10::Stream of_pool(at::Device device, bool high_priority = false) {
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, high_priority);
}

// The streams by which tensors go from one device to another, one on either, so that neither device waits for what the
// other's workers were given meanwhile.
struct Way {
  c10::Stream from, to;
};
Way way_between(at::Device from, at::Device to) {
  static std::mutex mutex;
  static std::map<std::pair<at::DeviceIndex, at::DeviceIndex>, Way> ways;
  const std::lock_guard lock(mutex);
  const std::pair key(from.index(), to.index());
  const auto found = ways.find(key);
  return found != ways.end() ? found->second : ways.emplace(key, Way{of_pool(from), of_pool(to)}).first->second;
}

at::Tensor moved(const at::Tensor& tensor, at::Device device, const DeviceEvent& ready) {
  const Way way = way_between(tensor.device(), device);
  at::Tensor copy;
  DeviceEvent left, came;
  {
    const StreamScope there(way.to), here(way.from);
    ready.block(tensor.device());
    copy = tensor.to(device);
    tensor.record_stream(way.from);
    left = DeviceEvent::record(tensor.device());
    came = DeviceEvent::record(device);
  }
  left.block(tensor.device());  // so that a lease of the tensor, which this thread ends, ends behind the copy
  came.block(device);
  copy.record_stream(current_stream(device));
  return copy;
}

// Not every version and device can wait for an event, but a stream that is blocked by one can be synchronised. Others
// may have given that stream work, which is then waited for too.
template <typename Event>
void wait_for(const Event& event) {
  if constexpr (requires { event.synchronize(); }) {
    if (event.device_type() == c10::DeviceType::CUDA) return event.synchronize();
  }
  const auto stream = make_side_stream(event.device());
  event.block(*stream);
  stream->synchronize();
}

template <typename Event>
constexpr bool kKeepsTimes = requires(const Event& event) {
  event.elapsedTime(event);
};

template <typename Event>
double seconds_between(const Event& from, const Event& to) {
  if constexpr (kKeepsTimes<Event>) return from.elapsedTime(to) / 1000;
  throw std::logic_error("events of this libtorch keep no times");
}

}  // namespace

bool has_streams(at::Device device) {
  return !device.is_cpu() && !device.is_meta();
}

at::Device device_named(const std::string& name) {
  const auto refuse = [&] {
    throw InputError(fmt::format("'{}' is not a device; give cpu, cuda (all that are there) or cuda:NUMBER", name));
  };
  std::optional<at::Device> device;
  try {
    device.emplace(name);
  } catch (const c10::Error&) {
    refuse();
  }
  // libtorch takes a number that is too large for its type.
  if (!(device->is_cpu() || has_stream_pool(device->type())) || device->str() != name) refuse();
  return *device;
}

at::Device find_device(at::Device device) {
  if (!has_streams(device)) return device;
  if (!is_built_in(device.type())) {
    throw InputError(fmt::format("there is no {}: libtorch was built without it", device.str()));
  }
  const int count = device_count(device.type());
  if (count == 0) throw InputError(fmt::format("there is no {}: none is seen here", device.str()));
  if (device.index() >= count) {
    throw InputError(fmt::format("there is no {}: {} {} seen here", device.str(), count, count == 1 ? "is" : "are"));
  }
  return device.has_index() ? device : c10::impl::VirtualGuardImpl(device.type()).getDevice();
}

int device_count(c10::DeviceType type) {
  return is_built_in(type) ? c10::impl::VirtualGuardImpl(type).deviceCount() : 0;
}

std::vector<at::Device> all_devices() {
  std::vector<at::Device> devices;
  for (const auto type : {c10::DeviceType::CUDA, c10::DeviceType::XPU, c10::DeviceType::PrivateUse1}) {
    for (int index = 0; index < device_count(type); ++index) {
      devices.emplace_back(type, static_cast<c10::DeviceIndex>(index));
    }
  }
  return devices;
}

void use_deterministic_functions() {
  at::Context& context = at::globalContext();
  // Not for warnings alone: then the backwards of attention would still add in any order.
  context.setDeterministicAlgorithms(true, /*warn_only=*/false);
  // cuDNN's attention, where it is used, is another function for some shapes and threads than for others.
  const auto leave_cudnn = [](auto& of) {
    if constexpr (requires { of.setSDPUseCuDNN(false); }) of.setSDPUseCuDNN(false);
  };
  leave_cudnn(context);
  // Newer versions then also fill new tensors with NaN, which costs time and is not needed for the same bits.
  const auto leave_empty = [](auto& of) {
    if constexpr (requires { of.setDeterministicFillUninitializedMemory(false); }) {
      of.setDeterministicFillUninitializedMemory(false);
    }
  };
  leave_empty(context);
  // cuBLAS chooses among its functions by the memory it has, and may take another each time unless it is one of two
  // values.
  constexpr const char* kWorkspace = "CUBLAS_WORKSPACE_CONFIG";
  const char* const given = std::getenv(kWorkspace);
  const bool repeats = given != nullptr && (std::string(given) == ":4096:8" || std::string(given) == ":16:8");
  if (!repeats) ::setenv(kWorkspace, ":4096:8", /*overwrite=*/1);
}

void load_linear_algebra(at::Device device) {
  if (!device.is_cuda()) return;
  static std::once_flag is_loaded;  // libtorch's library is the process's
  std::call_once(is_loaded, [&] { at::linalg_qr(at::eye(2, at::TensorOptions(at::kFloat).device(device))); });
}

std::optional<c10::Stream> make_stream(at::Device device) {
  if (!has_streams(device)) return std::nullopt;
  return of_pool(device);
}

std::optional<c10::Stream> make_side_stream(at::Device device) {
  if (!has_streams(device)) return std::nullopt;
  return of_pool(device, /*high_priority=*/true);
}

DeviceEvent DeviceEvent::record(at::Device device) {
  return record(device, c10::EventFlag::PYTORCH_DEFAULT);
}

DeviceEvent DeviceEvent::record_with_time(at::Device device) {
  return record(device, c10::EventFlag::BACKEND_DEFAULT);
}

DeviceEvent DeviceEvent::record(at::Device device, c10::EventFlag flag) {
  DeviceEvent recorded;
  if (!has_streams(device)) return recorded;
  auto event = std::make_shared<c10::Event>(device.type(), flag);
  event->record(current_stream(device));
  recorded.event_ = std::move(event);
  return recorded;
}

bool DeviceEvent::is_past() const {
  return !event_ || event_->query();
}

bool DeviceEvent::keep_times() {
  return kKeepsTimes<c10::Event>;
}

double DeviceEvent::seconds_since(const DeviceEvent& earlier) const {
  return seconds_between(*earlier.event_, *event_);
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
  if (event_) wait_for(*event_);
}

at::Tensor on_device(const at::Tensor& tensor, at::Device device, const DeviceEvent& ready) {
  if (!tensor.defined()) return tensor;
  if (tensor.device() == device) {
    ready.block(device);
    // The allocator must not reuse its memory before this thread's stream is done with it.
    if (has_streams(device)) tensor.record_stream(current_stream(device));
    return tensor;
  }
  if (has_streams(tensor.device()) && has_streams(device)) return moved(tensor, device, ready);
  if (device.is_cpu()) {
    // While a copy to the host waits in CUDA's driver, other threads' calls of the driver take many times as long.
    ready.wait();
    return tensor.to(device);
  }
  ready.block(tensor.device());
  // From pinned memory the thread need not wait for the copy, and so for all earlier work of its stream. libtorch keeps
  // pinned memory for reuse; tokens are small, and large tensors are copied rarely.
  constexpr size_t kMaxPinned = size_t{4} << 20;
  if (!device.is_cuda() || tensor.nbytes() > kMaxPinned) return tensor.to(device);
  return tensor.pin_memory().to(device, /*non_blocking=*/true);
}

}  // namespace gyre
