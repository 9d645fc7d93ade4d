// A transport that copies every message through bytes and returns each lease at once, as one across processes would.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "gyre/runtime/transport/link.h"
#include "gyre/runtime/transport/memory_transport.h"

namespace gyre::testing_support {

// A message as bytes: counts, then every value and tensor (type, sizes, contents).
inline std::string to_bytes(const Message& message) {
  std::string bytes;
  const auto put = [&](const void* data, size_t size) { bytes.append(static_cast<const char*>(data), size); };
  const auto number = [&](int64_t value) { put(&value, sizeof value); };
  number(static_cast<int64_t>(message.values.size()));
  put(message.values.data(), message.values.size() * sizeof(double));
  number(static_cast<int64_t>(message.tensors.size()));
  for (const at::Tensor& given : message.tensors) {
    const at::Tensor tensor = given.contiguous();
    number(static_cast<int64_t>(tensor.scalar_type()));
    number(tensor.dim());
    for (const int64_t size : tensor.sizes()) number(size);
    put(tensor.data_ptr(), tensor.nbytes());
  }
  return bytes;
}

inline Message from_bytes(int64_t number, const char* bytes) {
  Message message{number, {}, {}, {}};
  const auto take = [&](void* data, size_t size) {  // also of size 0, where memcpy would need valid addresses
    std::copy_n(std::exchange(bytes, bytes + size), size, static_cast<char*>(data));
  };
  const auto next = [&] {
    int64_t value = 0;
    take(&value, sizeof value);
    return value;
  };
  message.values.resize(static_cast<size_t>(next()));
  take(message.values.data(), message.values.size() * sizeof(double));
  message.tensors.resize(static_cast<size_t>(next()));
  for (at::Tensor& tensor : message.tensors) {
    const auto type = static_cast<at::ScalarType>(next());
    std::vector<int64_t> sizes(static_cast<size_t>(next()));
    for (int64_t& size : sizes) size = next();
    tensor = at::empty(sizes, type);
    take(tensor.data_ptr(), tensor.nbytes());
  }
  return message;
}

class CopyingTransport final : public Transport {
 public:
  explicit CopyingTransport(Transport& below) : below_(below) {}

  std::unique_ptr<Sender> sender(const LinkId& id, const LinkEnds& ends) override {
    struct CopyingSender final : Sender {
      explicit CopyingSender(std::unique_ptr<Sender> below) : below(std::move(below)) {}
      bool has_room() const override { return below->has_room(); }
      void send(Message message) override {
        const std::string bytes = to_bytes(message);
        const at::Tensor copy = at::empty({static_cast<int64_t>(bytes.size())}, at::kByte);
        std::memcpy(copy.data_ptr(), bytes.data(), bytes.size());
        // The sender may reuse the memory of a returned lease; NaN shows whoever still reads it.
        const auto& tensors = message.tensors;
        if (message.lease && message.lease.use_count() == 1) {
          for (const at::Tensor& tensor : tensors) tensor.fill_(std::numeric_limits<float>::quiet_NaN());
        }
        below->send({message.number, {copy}, {}, {}});
      }
      std::unique_ptr<Sender> below;
    };
    return std::make_unique<CopyingSender>(below_.sender(id, ends));
  }
  std::unique_ptr<Receiver> receiver(const LinkId& id, const LinkEnds& ends) override {
    struct CopyingReceiver final : Receiver {
      explicit CopyingReceiver(std::unique_ptr<Receiver> below) : below(std::move(below)) {}
      static std::optional<Message> unpacked(const std::optional<Message>& message) {
        if (!message) return std::nullopt;
        return from_bytes(message->number, static_cast<const char*>(message->tensors[0].data_ptr()));
      }
      std::optional<Message> try_receive(int64_t number) override { return unpacked(below->try_receive(number)); }
      std::optional<Message> try_receive() override { return unpacked(below->try_receive()); }
      int64_t waiting() const override { return below->waiting(); }
      std::unique_ptr<Receiver> below;
    };
    return std::make_unique<CopyingReceiver>(below_.receiver(id, ends));
  }

 private:
  Transport& below_;
};

inline std::unique_ptr<Transport> copying(Transport& memory, const Doorbells&) {
  return std::make_unique<CopyingTransport>(memory);
}

}  // namespace gyre::testing_support
