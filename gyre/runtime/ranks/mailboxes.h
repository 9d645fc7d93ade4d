// Where messages and credits from other processes wait until the local ends of links take them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "gyre/runtime/transport/doorbell.h"
#include "gyre/runtime/transport/link.h"

namespace gyre {

// Rings the bell of whoever is at this end of the link, if anybody is yet.
class Mailbox {
 public:
  void attach(Doorbell* bell) {
    const std::lock_guard lock(mutex_);
    bell_ = bell;
  }

 protected:
  // Call with the mutex held.
  void ring() {
    if (bell_ != nullptr) bell_->ring();
  }
  mutable std::mutex mutex_;

 private:
  Doorbell* bell_ = nullptr;
};

// Messages that have come and have not been taken.
class Inbox : public Mailbox {
 public:
  void put(Message message) {
    message.came = std::chrono::steady_clock::now();
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
    ring();
  }
  template <typename Wanted>
  std::optional<Message> take(Wanted wanted) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(messages_.begin(), messages_.end(), wanted);
    if (found == messages_.end()) return std::nullopt;
    std::optional<Message> taken = std::move(*found);
    messages_.erase(found);
    return taken;
  }
  int64_t waiting() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int64_t>(messages_.size());
  }

 private:
  std::deque<Message> messages_;
};

// Counts the messages taken at the other end.
class Outbox : public Mailbox {
 public:
  void add_room(int64_t messages) {
    const std::lock_guard lock(mutex_);
    taken_ += messages;
    ring();
  }
  int64_t taken() const {
    const std::lock_guard lock(mutex_);
    return taken_;
  }

 private:
  int64_t taken_ = 0;
};

// The boxes of all links. Any thread.
class Mailboxes {
 public:
  // The box of a link, made by whoever asks first: the local end, or a message for it. Null once the segment has ended.
  std::shared_ptr<Inbox> inbox(int64_t segment, const LinkId& link) { return box(inboxes_, {segment, link}); }
  std::shared_ptr<Outbox> outbox(int64_t segment, const LinkId& link) { return box(outboxes_, {segment, link}); }
  // Drops the boxes of this segment and of those before, and whatever still comes for them. Links of segment 0 stay.
  void end_segment(int64_t segment) {
    const std::lock_guard lock(mutex_);
    ended_segment_ = std::max(ended_segment_, segment);
    const auto is_over = [this](const auto& entry) { return has_ended(entry.first.first); };
    std::erase_if(inboxes_, is_over);
    std::erase_if(outboxes_, is_over);
  }

 private:
  using Key = std::pair<int64_t, LinkId>;  // segment, link

  bool has_ended(int64_t segment) const { return segment != 0 && segment <= ended_segment_; }
  template <typename Box>
  std::shared_ptr<Box> box(std::map<Key, std::shared_ptr<Box>>& boxes, const Key& key) {
    const std::lock_guard lock(mutex_);
    if (has_ended(key.first)) return nullptr;
    auto& box = boxes[key];
    if (!box) box = std::make_shared<Box>();
    return box;
  }

  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Inbox>> inboxes_;
  std::map<Key, std::shared_ptr<Outbox>> outboxes_;
  int64_t ended_segment_ = 0;
};

}  // namespace gyre
