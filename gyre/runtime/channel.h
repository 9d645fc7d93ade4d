// Channels carry activations down a pipeline and gradients up. Single producer, single consumer, bounded. Nothing here
// waits: whether there is room, and whether a message has come, are questions; a worker that gets a no sleeps on its
// doorbell, which rings at every message and whenever room is made.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "gyre/runtime/doorbell.h"

namespace gyre {

class Channel {
 public:
  virtual ~Channel() = default;

  // Whether send may be called. For a training schedule the answer is always yes, since the bound is the most
  // microbatches its sender holds in flight; forward-only programs have no such bound and need the back-pressure.
  virtual bool has_room() const = 0;
  virtual void send(int64_t microbatch, at::Tensor tensor) = 0;
  // The tensor of `microbatch` if it has arrived. Messages may be taken in another order than they were sent.
  virtual std::optional<at::Tensor> try_receive(int64_t microbatch) = 0;

  // The sender's last word: no microbatch at or past `limit` will come (a drain). Messages below it may still follow.
  virtual void close(int64_t limit) = 0;
  virtual std::optional<int64_t> closed_at() const = 0;
};

// Between workers of one process: tensors change hands without a copy.
class MemoryChannel final : public Channel {
 public:
  // `capacity`: the most messages that may wait; `name` is for the error when more are sent.
  MemoryChannel(std::shared_ptr<Doorbell> sender, std::shared_ptr<Doorbell> receiver, int64_t capacity,
                std::string name);

  bool has_room() const override;
  void send(int64_t microbatch, at::Tensor tensor) override;
  std::optional<at::Tensor> try_receive(int64_t microbatch) override;
  void close(int64_t limit) override;
  std::optional<int64_t> closed_at() const override;

 private:
  struct Message {
    int64_t microbatch;
    at::Tensor tensor;
  };
  std::shared_ptr<Doorbell> sender_;
  std::shared_ptr<Doorbell> receiver_;
  size_t capacity_;
  std::string name_;
  mutable std::mutex mutex_;
  std::deque<Message> messages_;
  std::optional<int64_t> closed_at_;
};

}  // namespace gyre
