// A device made up for the tests, behind libtorch's PrivateUse1. It computes on the CPU, at once, and tracks what a
// device with streams might not have done yet. Each stream has a vector clock, which events carry from one to another.
// Two uses of the same bytes, one of which writes, must be ordered by streams and events; memory must not be freed
// while a stream that its allocator does not know of (record_stream) may still use it. A violation is a fault, with the
// operation's name. Addresses of its tensors cannot be read: a function of the CPU that reads them ends the process.
// Tensors of two devices may meet only in copies, and tensors of the host only as scalars. Include it in one source of
// a program.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <torch/library.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace gyre::testing_support::made_up {

constexpr auto kType = c10::DeviceType::PrivateUse1;
constexpr c10::DeviceIndex kDevices = 8;
constexpr c10::StreamId kPool = 32;  // streams of each priority, handed out in turn

using StreamKey = std::pair<c10::DeviceIndex, c10::StreamId>;
using VectorClock = std::map<StreamKey, int64_t>;

inline StreamKey key_of(const c10::Stream& stream) {
  return {stream.device_index(), stream.id()};
}

inline void join(VectorClock& into, const VectorClock& other) {
  for (const auto& [stream, time] : other) into[stream] = std::max(into[stream], time);
}

// A use of some bytes of a block.
struct Use {
  size_t begin = 0, end = 0;
  bool writes = false;
  StreamKey stream;
  int64_t time = 0;
  std::string by;
};

struct Block {
  size_t offset = 0, bytes = 0;  // in the device's memory
  StreamKey stream;              // the stream it was allocated for
  std::set<StreamKey> recorded;
  std::vector<Use> uses;
};

class World {
 public:
  static World& only() {
    static World& world = *std::make_unique<World>().release();  // tensors may outlive main
    return world;
  }

  World() {
    const int file = ::memfd_create("made_up_device", 0);
    if (file < 0 || ::ftruncate(file, kBytes) != 0) throw std::runtime_error("no memory for a device");
    const auto map = [file](int protection) {
      return static_cast<std::byte*>(::mmap(nullptr, kBytes, protection, MAP_SHARED | MAP_NORESERVE, file, 0));
    };
    hidden_ = map(PROT_NONE);
    seen_ = map(PROT_READ | PROT_WRITE);
    ::close(file);
  }

  // The faults since the last call.
  std::vector<std::string> take_faults() {
    const std::lock_guard lock(mutex_);
    return std::exchange(faults_, {});
  }

  c10::DataPtr allocate(size_t bytes, c10::DeviceIndex device, StreamKey stream) {
    const std::lock_guard lock(mutex_);
    auto block = std::make_unique<Block>();
    block->bytes = bytes;
    block->stream = stream;
    const size_t size = (std::max<size_t>(bytes, 1) + 511) / 512 * 512;
    auto& free = free_[size];
    if (free.empty()) {
      block->offset = std::exchange(next_, next_ + size);
      if (next_ > kBytes) throw std::runtime_error("the made-up device has no more memory");
    } else {
      block->offset = free.back();
      free.pop_back();
    }
    void* const data = hidden_ + block->offset;
    return {data, block.release(), [](void* freed) { only().give_back(static_cast<Block*>(freed)); },
            c10::Device(kType, device)};
  }

  // The readable address of the bytes at a device's address.
  std::byte* seen(const void* hidden) const { return seen_ + (static_cast<const std::byte*>(hidden) - hidden_); }
  // The device's address of readable bytes; null if they are not the device's.
  const std::byte* hidden(const void* seen) const {
    const auto* address = static_cast<const std::byte*>(seen);
    return address >= seen_ && address < seen_ + kBytes ? hidden_ + (address - seen_) : nullptr;
  }

  void use(const at::Tensor& tensor, bool writes, const std::string& by, StreamKey stream) {
    if (tensor.numel() == 0) return;
    const std::lock_guard lock(mutex_);
    Block& block = *static_cast<Block*>(tensor.storage().data_ptr().get_context());
    int64_t last = 0;
    for (int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
    const size_t begin = static_cast<size_t>(tensor.storage_offset()) * tensor.element_size();
    Use use{begin, begin + static_cast<size_t>(last + 1) * tensor.element_size(), writes, stream, 0, by};
    VectorClock& now = clocks_[stream];
    use.time = ++now[stream];
    for (const Use& other : block.uses) {
      const bool meets = other.begin < use.end && use.begin < other.end;
      if (meets && (writes || other.writes) && !is_past(other, now)) {
        fault(fmt::format("{} on {} {} what {} on {} may still {}", by, name(stream), writes ? "writes" : "reads",
                          other.by, name(other.stream), other.writes ? "write" : "read"));
      }
    }
    std::erase_if(block.uses, [&](const Use& other) {
      const bool covered = use.begin <= other.begin && other.end <= use.end;
      return covered && is_past(other, now) && (writes || (!other.writes && other.stream == stream));
    });
    block.uses.push_back(std::move(use));
  }

  void record_stream(const at::Tensor& tensor, StreamKey stream) {
    if (tensor.storage().data_ptr().get_context() == nullptr) return;
    const std::lock_guard lock(mutex_);
    static_cast<Block*>(tensor.storage().data_ptr().get_context())->recorded.insert(stream);
  }

  VectorClock clock(StreamKey stream) {
    const std::lock_guard lock(mutex_);
    return clocks_[stream];
  }
  void wait(StreamKey stream, const VectorClock& event) {
    const std::lock_guard lock(mutex_);
    join(clocks_[stream], event);
  }
  // The host has waited: what it gives to any stream from now on comes after this.
  void finish(const VectorClock& done) {
    const std::lock_guard lock(mutex_);
    join(done_, done);
    ++waits_;
  }
  // How often the host has waited.
  int64_t waits() {
    const std::lock_guard lock(mutex_);
    return waits_;
  }
  bool is_done(const VectorClock& event) {
    const std::lock_guard lock(mutex_);
    return std::all_of(event.begin(), event.end(), [this](const auto& of) { return done_[of.first] >= of.second; });
  }

  c10::StreamId next_stream(c10::DeviceIndex device, bool high_priority) {
    const std::lock_guard lock(mutex_);
    return (high_priority ? kPool : 0) + 1 + given_[{device, high_priority}]++ % kPool;
  }

 private:
  static constexpr size_t kBytes = size_t{8} << 30;  // size of the address range

  static std::string name(StreamKey stream) { return fmt::format("stream {} of {}", stream.second, stream.first); }

  void give_back(Block* freed) {
    const std::unique_ptr<Block> block(freed);
    const std::lock_guard lock(mutex_);
    for (const Use& use : block->uses) {
      if (use.stream == block->stream || block->recorded.count(use.stream) > 0) continue;
      if (!is_past(use, clocks_[block->stream])) {
        fault(fmt::format("memory of {} is freed while {} on {} may still {} it", name(block->stream), use.by,
                          name(use.stream), use.writes ? "write" : "read"));
      }
    }
    free_[(std::max<size_t>(block->bytes, 1) + 511) / 512 * 512].push_back(block->offset);
  }
  bool is_past(const Use& use, const VectorClock& now) {
    const auto found = now.find(use.stream);
    return (found != now.end() && found->second >= use.time) || done_[use.stream] >= use.time;
  }
  void fault(std::string what) {
    constexpr size_t kMost = 20;
    const bool is_new = std::find(faults_.begin(), faults_.end(), what) == faults_.end();
    if (is_new && faults_.size() < kMost) faults_.push_back(std::move(what));
  }

  std::mutex mutex_;
  std::byte *hidden_ = nullptr, *seen_ = nullptr;  // two mappings of the same bytes
  size_t next_ = 0;
  std::map<size_t, std::vector<size_t>> free_;  // by size: offsets of free memory
  std::map<StreamKey, VectorClock> clocks_;
  VectorClock done_;
  int64_t waits_ = 0;
  std::map<std::pair<c10::DeviceIndex, bool>, int64_t> given_;
  std::vector<std::string> faults_;
};

// The device and streams that a thread's next operations go to.
struct Current {
  c10::DeviceIndex device = 0;
  std::array<c10::StreamId, kDevices> streams{};
};
inline thread_local Current current;

inline StreamKey current_stream(c10::Device device) {
  const c10::DeviceIndex index = device.has_index() ? device.index() : current.device;
  return {index, current.streams.at(static_cast<size_t>(index))};
}

struct Event {
  StreamKey stream;
  VectorClock clock;
};

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static c10::Stream stream(c10::DeviceIndex device, c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(kType, device), id);
  }
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return {kType, current.device}; }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.index() >= 0 && device.index() < kDevices, "there is no such device");
    current.device = device.index();
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override { current.device = device.index(); }
  c10::Stream getStream(c10::Device device) const noexcept override {
    const StreamKey key = current_stream(device);
    return stream(key.first, key.second);
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream(device.index(), 0); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    const c10::DeviceIndex index = current_stream(device).first;
    return stream(index, World::only().next_stream(index, high_priority));
  }
  c10::Stream exchangeStream(c10::Stream next) const noexcept override {
    const c10::Stream before = getStream(next.device());
    current.streams[static_cast<size_t>(next.device_index())] = next.id();
    return before;
  }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    const std::unique_ptr<Event> ended(static_cast<Event*>(event));
  }
  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
    if (*event == nullptr) *event = std::make_unique<Event>().release();
    *static_cast<Event*>(*event) = {key_of(stream), World::only().clock(key_of(stream))};
  }
  void block(void* event, const c10::Stream& stream) const override {
    World::only().wait(key_of(stream), static_cast<Event*>(event)->clock);
  }
  bool queryEvent(void* event) const override { return World::only().is_done(static_cast<Event*>(event)->clock); }
  // Every use of memory takes a millisecond. Not an override before libtorch 2.4.
  double elapsedTime(void* from, void* to, c10::DeviceIndex) const {
    const auto time = [](void* event) {
      const auto& [stream, clock] = *static_cast<Event*>(event);
      const auto found = clock.find(stream);
      return found == clock.end() ? 0.0 : static_cast<double>(found->second);
    };
    return time(to) - time(from);
  }
  bool queryStream(const c10::Stream& stream) const override {
    return World::only().is_done(World::only().clock(key_of(stream)));
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    World::only().finish(World::only().clock(key_of(stream)));
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

inline bool is_ours(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kType;
}

inline at::Tensor make(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type, c10::Device device) {
  const StreamKey stream = current_stream(device);
  int64_t elements = 1;
  for (size_t d = 0; d < sizes.size(); ++d) elements = sizes[d] == 0 ? 0 : elements + (sizes[d] - 1) * strides[d];
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) elements = 0;
  const size_t bytes = static_cast<size_t>(elements) * c10::elementSize(type);
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, World::only().allocate(bytes, stream.first, stream),
                       nullptr, false);
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::scalarTypeToTypeMeta(type));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return tensor;
}

inline at::Tensor make_like(const at::Tensor& on_host, c10::Device device) {
  return make(on_host.sizes(), on_host.strides(), on_host.scalar_type(), device);
}

// The same bytes as a tensor of the CPU, with storage of the same size.
inline at::Tensor as_host(const at::Tensor& tensor) {
  const auto options = at::TensorOptions().dtype(tensor.scalar_type()).device(at::kCPU);
  auto* const first = World::only().seen(tensor.storage().data_ptr().get());
  const auto elements = static_cast<int64_t>(tensor.storage().nbytes() / tensor.element_size());
  return at::from_blob(first, {elements}, options)
      .as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
}

// An operation that has no kernel here: runs the CPU's on the same bytes.
class Operation {
 public:
  Operation(const c10::OperatorHandle& op, torch::jit::Stack* stack)
      : op_(op), schema_(op.schema()), stack_(*stack), name_(schema_.name()) {}

  void run() {
    const size_t count = schema_.arguments().size(), first = stack_.size() - count;
    given_.assign(stack_.begin() + static_cast<std::ptrdiff_t>(first), stack_.end());
    for (size_t i = 0; i < count; ++i) find_device(given_[i]);
    for (size_t i = 0; i < count; ++i) stack_[first + i] = taken(i);
    op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack_);
    for (const auto& [ours, made] : resized_) {
      const at::Tensor result = make_like(made, *device_);
      as_host(result).copy_(made);
      ours.unsafeGetTensorImpl()->set_storage_keep_dtype(result.storage());
      ours.unsafeGetTensorImpl()->set_sizes_and_strides(result.sizes(), result.strides());
      use(ours, true);
    }
    const size_t returns = schema_.returns().size();
    for (size_t i = 0; i < returns; ++i) {
      c10::IValue& value = stack_[stack_.size() - returns + i];
      value = returned(value, schema_.returns()[i]);
    }
  }

 private:
  void use(const at::Tensor& tensor, bool writes) {
    World::only().use(tensor, writes, name_, current_stream(tensor.device()));
  }
  void note(const at::Tensor& tensor) {
    if (!is_ours(tensor)) return;
    TORCH_CHECK(!device_ || *device_ == tensor.device(), name_, ": tensors of ", *device_, " and ", tensor.device());
    device_ = tensor.device();
  }
  void find_device(const c10::IValue& value) {
    if (value.isTensor()) note(value.toTensor());
    if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) note(tensor);
    }
    if (value.isOptionalTensorList()) {
      for (const c10::optional<at::Tensor>& tensor : value.toOptionalTensorList().vec()) {
        if (tensor) note(*tensor);
      }
    }
    if (value.isDevice() && value.toDevice().type() == kType && !device_) {
      device_ = c10::Device(kType, current_stream(value.toDevice()).first);
    }
  }
  // views: the result is a view of the tensor, whose values are not read.
  at::Tensor taken(const at::Tensor& tensor, bool writes, bool views) {
    if (!tensor.defined()) return tensor;
    if (!is_ours(tensor)) {
      TORCH_CHECK(tensor.dim() == 0 || !device_, name_, ": a tensor of ", tensor.device(), " among those of ",
                  device_.value_or(c10::Device(kType)));
      return tensor;
    }
    if (writes && tensor.numel() == 0) {
      resized_.emplace_back(tensor, at::empty({0}, at::TensorOptions().dtype(tensor.scalar_type()).device(at::kCPU)));
      return resized_.back().second;
    }
    if (!views) use(tensor, writes);
    return as_host(tensor);
  }
  c10::IValue taken(size_t argument) {
    const c10::IValue& value = given_[argument];
    const auto* alias = schema_.arguments()[argument].alias_info();
    const bool writes = alias != nullptr && alias->isWrite(), views = alias != nullptr && !writes;
    if (value.isTensor()) return taken(value.toTensor(), writes, views);
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(taken(tensor, writes, views));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<c10::optional<at::Tensor>> list;
      for (const c10::optional<at::Tensor>& tensor : value.toOptionalTensorList().vec()) {
        list.push_back(tensor ? c10::optional<at::Tensor>(taken(*tensor, writes, views)) : tensor);
      }
      return list;
    }
    if (value.isDevice() && value.toDevice().type() == kType) return c10::Device(at::kCPU);
    return value;
  }
  c10::IValue returned(const c10::IValue& value, const c10::Argument& as) {
    if (value.isTensor()) return returned(value.toTensor(), as);
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(returned(tensor, as));
      return list;
    }
    if (value.isScalar() && device_) World::only().finish(World::only().clock(current_stream(*device_)));
    return value;
  }
  // The result on the device: a tensor that was given, a view of one, or a new one.
  at::Tensor returned(const at::Tensor& tensor, const c10::Argument& as) {
    if (!tensor.defined() || !device_) return tensor;
    if (as.alias_info() != nullptr && as.alias_info()->isWrite()) {
      for (size_t i = 0; i < given_.size(); ++i) {
        const auto* alias = schema_.arguments()[i].alias_info();
        if (alias != nullptr && alias->isWrite() && alias->beforeSets() == as.alias_info()->beforeSets()) {
          return given_[i].toTensor();
        }
      }
    }
    const std::byte* const hidden = World::only().hidden(tensor.data_ptr());
    for (const c10::IValue& given : given_) {
      if (hidden == nullptr || !given.isTensor() || !is_ours(given.toTensor())) continue;
      const at::Tensor& of = given.toTensor();
      const auto* const begin = static_cast<const std::byte*>(of.storage().data_ptr().get());
      if (hidden < begin || hidden >= begin + of.storage().nbytes()) continue;
      auto view = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(of.storage()),
                                                           of.key_set(), tensor.dtype());
      view.unsafeGetTensorImpl()->set_storage_offset((hidden - begin) / static_cast<int64_t>(tensor.element_size()));
      view.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides());
      return view;
    }
    const at::Tensor made = make_like(tensor, *device_);
    as_host(made).copy_(tensor);
    use(made, true);
    return made;
  }

  const c10::OperatorHandle& op_;
  const c10::FunctionSchema& schema_;
  torch::jit::Stack& stack_;
  std::string name_;
  std::vector<c10::IValue> given_;
  c10::optional<c10::Device> device_;
  std::vector<std::pair<at::Tensor, at::Tensor>> resized_;
};

inline void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Operation(op, stack).run();
}

inline at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, c10::optional<at::ScalarType> type,
                                c10::optional<at::Layout>, c10::optional<at::Device> device, c10::optional<bool>) {
  return make(sizes, strides, type.value_or(at::kFloat), device.value_or(c10::Device(kType)));
}

inline at::Tensor empty(at::IntArrayRef sizes, c10::optional<at::ScalarType> type, c10::optional<at::Layout> layout,
                        c10::optional<at::Device> device, c10::optional<bool> pinned, c10::optional<at::MemoryFormat>) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<int64_t>(sizes[d], 1);
  return empty_strided(sizes, strides, type, layout, device, pinned);
}

// Copies as CUDA does. Between devices, the source's current stream copies, after what the target's has been given, and
// the target's continues after it. From or to the host, whose memory is not pinned, the host waits.
inline at::Tensor& copy(at::Tensor& to, const at::Tensor& from, bool) {
  World& world = World::only();
  const StreamKey stream = current_stream((is_ours(from) ? from : to).device());
  const bool across = is_ours(to) && is_ours(from) && to.device() != from.device();
  if (across) world.wait(stream, world.clock(current_stream(to.device())));
  if (is_ours(from)) world.use(from, false, "copy_", stream);
  if (is_ours(to)) world.use(to, true, "copy_", stream);
  if (across) world.wait(current_stream(to.device()), world.clock(stream));
  const auto seen = [](const at::Tensor& tensor) { return is_ours(tensor) ? as_host(tensor) : tensor; };
  seen(to).copy_(seen(from));
  if (!is_ours(from) || !is_ours(to)) world.finish(world.clock(stream));
  return to;
}

inline void record_stream(at::Tensor& tensor, c10::Stream stream) {
  World::only().record_stream(tensor, key_of(stream));
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fall_back>());
}
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("copy_", &copy);
  m.impl("record_stream", &record_stream);
  // Functions that would otherwise be composed of their variants with outputs.
  for (const char* whole : {"_linalg_eigh", "linalg_qr", "sort.stable"}) {
    m.impl(whole, torch::CppFunction::makeFromBoxedFunction<&fall_back>());
  }
}

}  // namespace gyre::testing_support::made_up
