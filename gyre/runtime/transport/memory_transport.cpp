#include "gyre/runtime/transport/memory_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>

#include "gyre/core/error.h"

namespace gyre {

Doorbells::Doorbells(int count) {
  for (int worker = 0; worker < count; ++worker) workers.push_back(std::make_unique<Doorbell>());
}

// The messages under way on one link, shared by its two ends under a mutex.
class MemoryTransport::Queue final {
 public:
  Queue(const LinkId& id, size_t capacity, Doorbell& sender, Doorbell& receiver)
      : id_(id), capacity_(capacity), sender_(sender), receiver_(receiver) {}

  bool has_room() const {
    const std::lock_guard lock(mutex_);
    return messages_.size() < capacity_;
  }
  int64_t waiting() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int64_t>(messages_.size());
  }
  void send(Message message) {
    {
      const std::lock_guard lock(mutex_);
      if (messages_.size() >= capacity_) {
        throw RunError(fmt::format("{}: more than the {} messages the schedule allows", to_string(id_), capacity_));
      }
      messages_.push_back(std::move(message));
    }
    receiver_.ring();
  }
  template <typename Wanted>
  std::optional<Message> take(Wanted wanted) {
    std::optional<Message> message;
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::find_if(messages_.begin(), messages_.end(), wanted);
      if (found == messages_.end()) return std::nullopt;
      message = std::move(*found);
      messages_.erase(found);
    }
    sender_.ring();
    return message;
  }

 private:
  LinkId id_;
  size_t capacity_;
  Doorbell& sender_;
  Doorbell& receiver_;
  mutable std::mutex mutex_;
  std::deque<Message> messages_;
};

std::shared_ptr<MemoryTransport::Queue> MemoryTransport::queue(const LinkId& id, const LinkEnds& ends) {
  auto& queue = queues_[id];
  if (!queue) {
    queue = std::make_shared<Queue>(id, static_cast<size_t>(ends.capacity), bells_.of(ends.from), bells_.of(ends.to));
  }
  return queue;
}

std::unique_ptr<Sender> MemoryTransport::sender(const LinkId& id, const LinkEnds& ends) {
  class QueueSender final : public Sender {
   public:
    explicit QueueSender(std::shared_ptr<Queue> queue) : queue_(std::move(queue)) {}
    bool has_room() const override { return queue_->has_room(); }
    void send(Message message) override { queue_->send(std::move(message)); }

   private:
    std::shared_ptr<Queue> queue_;
  };
  return std::make_unique<QueueSender>(queue(id, ends));
}

std::unique_ptr<Receiver> MemoryTransport::receiver(const LinkId& id, const LinkEnds& ends) {
  class QueueReceiver final : public Receiver {
   public:
    explicit QueueReceiver(std::shared_ptr<Queue> queue) : queue_(std::move(queue)) {}
    std::optional<Message> try_receive(int64_t number) override {
      return queue_->take([number](const Message& message) { return message.number == number; });
    }
    std::optional<Message> try_receive() override {
      return queue_->take([](const Message&) { return true; });
    }
    int64_t waiting() const override { return queue_->waiting(); }

   private:
    std::shared_ptr<Queue> queue_;
  };
  return std::make_unique<QueueReceiver>(queue(id, ends));
}

}  // namespace gyre
