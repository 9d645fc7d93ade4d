// Channels between CUDA devices, over NCCL: a communicator of two processes for each direction, with a stream of its
// own, so that a direction waits only for itself. NCCL has no tags: tensors are received in the order in which they are
// sent.
#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/runtime/ranks/device_channel.h"
#include "gyre/tensors/device.h"

namespace gyre {
namespace {

constexpr int kSender = 0, kReceiver = 1;  // ranks in a communicator

void check(ncclResult_t result, const char* what) {
  // A nonblocking communicator returns this while it is busy.
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw RunError(fmt::format("NCCL cannot {}: {}", what, ncclGetErrorString(result)));
}

// A stream of the channel's own. Those of libtorch's pool are handed out in turn, and whoever shares one with a
// receiver waits for what another process has not sent yet. It is never destroyed, since memory that it has used may
// outlive the channel.
c10::Stream own_stream(at::Device device) {
  const c10::DeviceGuard guard(device);
  cudaStream_t stream = nullptr;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) {
    throw RunError(fmt::format("{} has no more streams", device.str()));
  }
  return c10::cuda::getStreamFromExternal(stream, device.index()).unwrap();
}

class NcclChannel final : public DeviceChannel {
 public:
  NcclChannel(const std::string& id, at::Device device, bool sends) : device_(device), stream_(own_stream(device)) {
    ncclUniqueId unique;
    if (id.size() != sizeof unique.internal)
      throw RunError("another process has no NCCL; start all ranks with the same build");
    std::memcpy(unique.internal, id.data(), sizeof unique.internal);
    const StreamScope scope(stream_);
    check(ncclCommInitRank(&communicator_, 2, unique, sends ? kSender : kReceiver), "connect two devices");
    // NCCL sets up its connection with the first message, and both ends, with their devices, then wait for each other.
    // That is done here, while nothing else is under way.
    const at::Tensor first = at::zeros({1}, at::TensorOptions(at::kByte).device(device_));
    in_one_group([&] { sends ? give(first) : take(first); });
    stream_.synchronize();
  }
  ~NcclChannel() override {
    if (!aborted_) ncclCommDestroy(communicator_);
  }
  NcclChannel(const NcclChannel&) = delete;
  NcclChannel& operator=(const NcclChannel&) = delete;

  void send(Message message) override {
    const std::lock_guard lock(use_);
    if (aborted_) return;
    const StreamScope scope(stream_);
    message.ready.block(device_);
    in_one_group([&] {
      for (at::Tensor& tensor : message.tensors) {
        tensor.record_stream(stream_);  // before contiguous() may replace it with a copy that belongs to this stream
        tensor = tensor.contiguous();
        give(tensor);
      }
    });
    message.lease.reset();  // within the scope: the next holder of the memory waits for this stream
  }

  Message receive(const std::vector<at::Tensor>& like) override {
    const StreamScope scope(stream_);
    Message message;
    for (const at::Tensor& one : like) {
      message.tensors.push_back(at::empty(one.sizes(), at::TensorOptions(one.scalar_type()).device(device_)));
    }
    const std::lock_guard lock(use_);
    if (aborted_) return message;
    in_one_group([&] {
      for (const at::Tensor& tensor : message.tensors) take(tensor);
    });
    message.ready = DeviceEvent::record(device_);
    return message;
  }

  // Destroys the communicator, so nobody may be using it. A user finishes at once, unless the device accepts nothing
  // more; then it is aborted after a short wait.
  void abort() override {
    constexpr std::chrono::seconds kPatience{2};
    const std::unique_lock lock(use_, kPatience);
    if (!aborted_.exchange(true)) ncclCommAbort(communicator_);
  }

 private:
  void give(const at::Tensor& tensor) {
    if (tensor.nbytes() == 0) return;
    check(ncclSend(tensor.data_ptr(), tensor.nbytes(), ncclInt8, kReceiver, communicator_, cuda_stream()), "send");
  }
  void take(const at::Tensor& tensor) {
    if (tensor.nbytes() == 0) return;
    check(ncclRecv(tensor.data_ptr(), tensor.nbytes(), ncclInt8, kSender, communicator_, cuda_stream()), "receive");
  }
  template <typename Operations>
  static void in_one_group(Operations operations) {
    check(ncclGroupStart(), "begin a group");
    try {
      operations();
    } catch (...) {
      ncclGroupEnd();  // otherwise the thread's next operations would wait in this group
      throw;
    }
    check(ncclGroupEnd(), "end a group");
  }
  cudaStream_t cuda_stream() const { return c10::cuda::CUDAStream(stream_).stream(); }

  at::Device device_;
  c10::Stream stream_;
  std::timed_mutex use_;  // guards the communicator
  ncclComm_t communicator_ = nullptr;
  std::atomic<bool> aborted_ = false;
};

// The device's UUID, in hexadecimal digits.
std::string identity_of(at::Device device) {
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, device.index()) != cudaSuccess) {
    throw RunError(fmt::format("{} does not say which device it is", device.str()));
  }
  std::string digits;
  for (const char byte : properties.uuid.bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return digits;
}

class NcclChannels final : public DeviceChannels {
 public:
  explicit NcclChannels(at::Device device) : device_(device), identity_(identity_of(device)) {}
  at::Device device() const override { return device_; }
  std::string identity() const override { return identity_; }
  std::string new_id() override {
    ncclUniqueId id;
    check(ncclGetUniqueId(&id), "be reached");
    return {id.internal, sizeof id.internal};
  }
  std::unique_ptr<DeviceChannel> open(const std::string& id, bool sends) override {
    return std::make_unique<NcclChannel>(id, device_, sends);
  }

 private:
  at::Device device_;
  std::string identity_;
};

}  // namespace

std::unique_ptr<DeviceChannels> make_device_channels(at::Device device) {
  if (!device.is_cuda()) return nullptr;
  return std::make_unique<NcclChannels>(device);
}

}  // namespace gyre
