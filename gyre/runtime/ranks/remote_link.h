// The two ends of a link between processes. The receiver returns credits for messages it has taken, so the sender knows
// whether there is room without asking, and whatever arrives always finds room.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "gyre/runtime/ranks/mailboxes.h"
#include "gyre/runtime/ranks/ranks.h"

namespace gyre {

// On a link with room for many messages, one credit covers several; the sender has that much more room.
inline int64_t messages_per_credit(int64_t capacity) {
  return capacity < 64 ? 1 : capacity / 16;
}

class RemoteReceiver final : public Receiver {
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
  int64_t waiting() const override { return inbox_->waiting(); }

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

class RemoteSender final : public Sender {
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
  // Where the schedule bounds the messages under way, nobody asks whether there is room: credits may be late.
  void send(Message message) override {
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
