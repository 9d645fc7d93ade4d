// The two ends of a link between processes. The sender knows how many messages have been taken, from credits that the
// receiver sends back; so it knows whether there is room without asking, and what comes always finds room.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/runtime/ranks/ranks.h"

namespace gyre {

// Of a link with room for many, credits are sent for several messages at once; the sender has so much more room.
inline int64_t messages_per_credit(int64_t capacity) {
  return capacity < 64 ? 1 : capacity / 16;
}

// Messages that have come and have not been taken.
class Ranks::Inbox {
 public:
  void put(Message message) {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
    if (bell_ != nullptr) bell_->ring();
  }
  template <typename Wanted>
  std::optional<Message> take(Wanted wanted) {
    const std::lock_guard lock(mutex_);
    for (auto message = messages_.begin(); message != messages_.end(); ++message) {
      if (!wanted(*message)) continue;
      std::optional<Message> taken = std::move(*message);
      messages_.erase(message);
      return taken;
    }
    return std::nullopt;
  }
  void attach(Doorbell* bell) {
    const std::lock_guard lock(mutex_);
    bell_ = bell;
  }

 private:
  std::mutex mutex_;
  std::deque<Message> messages_;
  Doorbell* bell_ = nullptr;
};

// How many messages have been taken at the other end.
class Ranks::Outbox {
 public:
  void add_room(int64_t messages) {
    const std::lock_guard lock(mutex_);
    taken_ += messages;
    if (bell_ != nullptr) bell_->ring();
  }
  int64_t taken() const {
    const std::lock_guard lock(mutex_);
    return taken_;
  }
  void attach(Doorbell* bell) {
    const std::lock_guard lock(mutex_);
    bell_ = bell;
  }

 private:
  mutable std::mutex mutex_;
  int64_t taken_ = 0;
  Doorbell* bell_ = nullptr;
};

class Ranks::RemoteReceiver final : public Receiver {
 public:
  RemoteReceiver(Ranks& ranks, int from, int64_t segment, const LinkId& id, int64_t capacity,
                 std::shared_ptr<Inbox> inbox, Doorbell& bell)
      : ranks_(ranks),
        from_(from),
        segment_(segment),
        id_(id),
        per_credit_(messages_per_credit(capacity)),
        inbox_(std::move(inbox)) {
    inbox_->attach(&bell);
  }
  ~RemoteReceiver() override { inbox_->attach(nullptr); }

  std::optional<Message> try_receive(int64_t number) override {
    return credited(inbox_->take([number](const Message& message) { return message.number == number; }));
  }
  std::optional<Message> try_receive() override {
    return credited(inbox_->take([](const Message&) { return true; }));
  }

 private:
  std::optional<Message> credited(std::optional<Message> message) {
    if (message && ++taken_ == per_credit_) {
      Envelope credit{Envelope::Kind::Credit, segment_, id_, {}};
      credit.message.number = std::exchange(taken_, 0);
      ranks_.send(from_, std::move(credit));
    }
    return message;
  }

  Ranks& ranks_;
  int from_;
  int64_t segment_;
  LinkId id_;
  int64_t per_credit_, taken_ = 0;
  std::shared_ptr<Inbox> inbox_;
};

class Ranks::RemoteSender final : public Sender {
 public:
  RemoteSender(Ranks& ranks, int to, int64_t segment, const LinkId& id, int64_t capacity,
               std::shared_ptr<Outbox> outbox, Doorbell& bell)
      : ranks_(ranks),
        to_(to),
        segment_(segment),
        id_(id),
        room_(capacity + messages_per_credit(capacity) - 1),
        outbox_(std::move(outbox)) {
    outbox_->attach(&bell);
  }
  ~RemoteSender() override { outbox_->attach(nullptr); }

  bool has_room() const override { return sent_ - outbox_->taken() < room_; }
  void send(Message message) override {
    if (!has_room()) throw RunError(to_string(id_) + ": more messages than the schedule allows");
    ++sent_;
    ranks_.send(to_, {Envelope::Kind::Message, segment_, id_, std::move(message)});
  }

 private:
  Ranks& ranks_;
  int to_;
  int64_t segment_;
  LinkId id_;
  int64_t room_, sent_ = 0;
  std::shared_ptr<Outbox> outbox_;
};

}  // namespace gyre
