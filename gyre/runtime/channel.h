// Channels carry activations down a pipeline and gradients up, a replica's gradients to the owner and the owner's new
// versions back. Single producer, single consumer, bounded. Nothing here waits: whether there is room, and whether a
// message has come, are questions; a worker that gets a no sleeps on its doorbell, which rings at every message and
// whenever room is made.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/runtime/doorbell.h"

namespace gyre {

// Messages are numbered by microbatch, or by window.
template <typename Message>
class Channel {
 public:
  virtual ~Channel() = default;

  // Whether send may be called. For a training schedule the answer is always yes, since the bound is the most
  // microbatches its sender holds in flight; forward-only programs have no such bound and need the back-pressure.
  virtual bool has_room() const = 0;
  virtual void send(int64_t number, Message message) = 0;
  // The message of that number if it has arrived. Messages may be taken in another order than they were sent.
  virtual std::optional<Message> try_receive(int64_t number) = 0;

  // The sender's last word: no number at or past `limit` will come (a drain). Messages below it may still follow.
  virtual void close(int64_t limit) = 0;
  virtual std::optional<int64_t> closed_at() const = 0;
};

// Between workers of one process: messages change hands without a copy.
template <typename Message>
class MemoryChannel final : public Channel<Message> {
 public:
  // `capacity`: the most messages that may wait; `name` is for the error when more are sent.
  MemoryChannel(std::shared_ptr<Doorbell> sender, std::shared_ptr<Doorbell> receiver, int64_t capacity,
                std::string name)
      : sender_(std::move(sender)),
        receiver_(std::move(receiver)),
        capacity_(static_cast<size_t>(capacity)),
        name_(std::move(name)) {}

  bool has_room() const override {
    const std::lock_guard lock(mutex_);
    return messages_.size() < capacity_;
  }

  void send(int64_t number, Message message) override {
    {
      const std::lock_guard lock(mutex_);
      if (messages_.size() >= capacity_) {
        throw RunError(fmt::format("channel {}: more than the {} messages the schedule allows", name_, capacity_));
      }
      messages_.push_back({number, std::move(message)});
    }
    receiver_->ring();
  }

  std::optional<Message> try_receive(int64_t number) override {
    std::optional<Message> message;
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::find_if(messages_.begin(), messages_.end(),
                                      [&](const Numbered& candidate) { return candidate.number == number; });
      if (found == messages_.end()) return std::nullopt;
      message = std::move(found->message);
      messages_.erase(found);
    }
    sender_->ring();
    return message;
  }

  void close(int64_t limit) override {
    {
      const std::lock_guard lock(mutex_);
      closed_at_ = limit;
    }
    receiver_->ring();
  }

  std::optional<int64_t> closed_at() const override {
    const std::lock_guard lock(mutex_);
    return closed_at_;
  }

 private:
  struct Numbered {
    int64_t number;
    Message message;
  };
  std::shared_ptr<Doorbell> sender_;
  std::shared_ptr<Doorbell> receiver_;
  size_t capacity_;
  std::string name_;
  mutable std::mutex mutex_;
  std::deque<Numbered> messages_;
  std::optional<int64_t> closed_at_;
};

}  // namespace gyre
