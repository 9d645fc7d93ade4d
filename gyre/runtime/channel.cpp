#include "gyre/runtime/channel.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gyre/core/error.h"

namespace gyre {

MemoryChannel::MemoryChannel(std::shared_ptr<Doorbell> sender, std::shared_ptr<Doorbell> receiver, int64_t capacity,
                             std::string name)
    : sender_(std::move(sender)),
      receiver_(std::move(receiver)),
      capacity_(static_cast<size_t>(capacity)),
      name_(std::move(name)) {}

bool MemoryChannel::has_room() const {
  const std::lock_guard lock(mutex_);
  return messages_.size() < capacity_;
}

void MemoryChannel::send(int64_t microbatch, at::Tensor tensor) {
  {
    const std::lock_guard lock(mutex_);
    if (messages_.size() >= capacity_) {
      throw RunError(fmt::format("channel {}: more than the {} messages the schedule allows", name_, capacity_));
    }
    messages_.push_back({microbatch, std::move(tensor)});
  }
  receiver_->ring();
}

std::optional<at::Tensor> MemoryChannel::try_receive(int64_t microbatch) {
  at::Tensor tensor;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(messages_.begin(), messages_.end(),
                                    [&](const Message& message) { return message.microbatch == microbatch; });
    if (found == messages_.end()) return std::nullopt;
    tensor = std::move(found->tensor);
    messages_.erase(found);
  }
  sender_->ring();
  return tensor;
}

void MemoryChannel::close(int64_t limit) {
  {
    const std::lock_guard lock(mutex_);
    closed_at_ = limit;
  }
  receiver_->ring();
}

std::optional<int64_t> MemoryChannel::closed_at() const {
  const std::lock_guard lock(mutex_);
  return closed_at_;
}

}  // namespace gyre
