#include "gyre/runtime/ranks/ranks.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/timing.h"
#include "gyre/runtime/ranks/remote_link.h"

namespace gyre {

Message wait_for(Ranks& ranks, Receiver& link, Doorbell& bell, const std::stop_token& stop, Patience patience) {
  const auto begun = std::chrono::steady_clock::now();
  const Ranks::Watch watch(ranks, bell, {});
  const std::stop_callback wake(stop, [&bell] { bell.ring(); });
  for (;;) {
    const uint64_t ticket = bell.ticket();
    if (auto message = link.try_receive()) return std::move(*message);
    ranks.raise_failure();
    if (stop.stop_requested()) throw RunError("the process ends");
    if (!patience.when_over) {
      bell.wait(ticket);
    } else if (const double left = patience.seconds - seconds_since(begun); left > 0) {
      bell.wait_for(ticket, std::chrono::duration<double>(left));
    } else {
      std::exchange(patience.when_over, {})();
    }
  }
}

at::Tensor to_tensor(const std::string& text) {
  at::Tensor bytes = at::empty({static_cast<int64_t>(text.size())}, at::kByte);
  if (!text.empty()) std::memcpy(bytes.data_ptr(), text.data(), text.size());
  return bytes;
}

std::string to_text(const at::Tensor& bytes) {
  return {static_cast<const char*>(bytes.data_ptr()), static_cast<size_t>(bytes.numel())};
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Ranks::Ranks(int rank, int world, std::string job, std::unique_ptr<Rendezvous> rendezvous,
             std::chrono::seconds meet_within, double (*clock)())
    : rank_(rank),
      job_(std::move(job)),
      rendezvous_(std::move(rendezvous)),
      clock_(clock),
      meet_within_(meet_within),
      others_(static_cast<size_t>(world)) {}

Ranks::~Ranks() {
  for (int number = 0; number < world(); ++number) {
    Peer* const peer = others_[static_cast<size_t>(number)].peer.get();
    if (peer == nullptr) continue;
    answers(number) ? peer->close() : peer->give_up();
  }
  for (Other& other : others_) {
    if (other.peer) other.peer->join();
  }
  if (!failure()) return;
  for (Other& other : others_) {  // transfers under way may wait for a process that has ended
    for (DeviceChannel* channel : {other.out.get(), other.in.get()}) {
      if (channel != nullptr) channel->abort();
    }
  }
}

// Whether that process will answer a goodbye. After a failure only those to and from rank 0, which decides, are relied
// on: other processes may wait for each other forever.
bool Ranks::answers(int number) const {
  const std::lock_guard lock(mutex_);
  return !others_[static_cast<size_t>(number)].lost && (!failure_ || rank_ == 0 || number == 0);
}

bool Ranks::goes_by_channel(const Other& other, const Envelope& envelope) const {
  const auto& tensors = envelope.message.tensors;
  if (!other.out || envelope.kind != Envelope::Kind::Message || tensors.empty()) return false;
  return std::all_of(tensors.begin(), tensors.end(),
                     [this](const at::Tensor& tensor) { return tensor.device() == channels_->device(); });
}

void Ranks::send(int to, Envelope envelope) {
  Other& other = others_[static_cast<size_t>(to)];
  if (!other.peer) throw std::logic_error(fmt::format("rank {} is not connected to rank {}", rank_, to));
  if (!goes_by_channel(other, envelope)) {
    other.peer->send(std::move(envelope));
    return;
  }
  Envelope announced = envelope;
  announced.message.lease.reset();
  announced.message.ready = {};
  for (at::Tensor& tensor : announced.message.tensors) {
    tensor = at::empty(tensor.sizes(), at::TensorOptions(tensor.scalar_type()).device(at::kMeta));
  }
  const std::lock_guard lock(other.order);
  other.peer->send(std::move(announced));
  other.out->send(std::move(envelope.message));
}

// Receives the tensors of an announced message. It must be done in the order of announcements, even if nobody wants the
// message any more.
void Ranks::take_contents(Other& from, Message& message) {
  if (!from.in) throw RunError("tensors were announced that no channel brings; is every process of the same build?");
  Message contents = from.in->receive(message.tensors);
  message.tensors = std::move(contents.tensors);
  message.ready = std::move(contents.ready);
}

// A frame has come. A beat waits behind a large message, which may take long on a slow link: every part of one counts.
void Ranks::hear(int from, bool in_part) {
  if (in_part) parts_.fetch_add(1);
  const std::lock_guard lock(mutex_);
  Other& other = others_[static_cast<size_t>(from)];
  other.heard = Clock::now();
  if (std::exchange(other.has_spoken, true)) return;
  for (Doorbell* bell : bells_) bell->ring();
}

void Ranks::deliver(int from, Envelope envelope) {
  Message& message = envelope.message;
  switch (envelope.kind) {
    case Envelope::Kind::Message:
      if (!message.tensors.empty() && message.tensors[0].is_meta()) {
        take_contents(others_[static_cast<size_t>(from)], message);
      }
      if (const auto to = mailboxes_.inbox(envelope.segment, envelope.link)) to->put(std::move(message));
      break;
    case Envelope::Kind::Credit:
      if (const auto to = mailboxes_.outbox(envelope.segment, envelope.link)) to->add_room(message.number);
      break;
    case Envelope::Kind::Beat: {
      RankStatus status = parse_rank_status(to_text(message.tensors.at(0)));
      const std::lock_guard lock(mutex_);
      if (status.stop) {
        asked_to_stop_ = true;
        for (Doorbell* bell : bells_) bell->ring();
      }
      others_[static_cast<size_t>(from)].status = std::move(status);
      break;
    }
    case Envelope::Kind::Clock:
      answer_time(from, std::move(message));
      break;
    case Envelope::Kind::Note: {
      const std::lock_guard lock(mutex_);
      notes_.push_back(fmt::format("{}: {}", others_[static_cast<size_t>(from)].name, to_text(message.tensors.at(0))));
      for (Doorbell* bell : bells_) bell->ring();
      break;
    }
    case Envelope::Kind::Failure: {
      if (from == 0) {
        const std::lock_guard lock(mutex_);
        exit_code_ = static_cast<int>(message.values.at(1));
      }
      fail(static_cast<int>(message.values.at(0)), to_text(message.tensors.at(0)));
      break;
    }
    case Envelope::Kind::Goodbye: {
      const std::lock_guard lock(mutex_);
      others_[static_cast<size_t>(from)].left = true;
      for (Doorbell* bell : bells_) bell->ring();
      break;
    }
  }
}

std::unique_ptr<Receiver> Ranks::receiver(int from, int64_t segment, const LinkId& id, int64_t capacity,
                                          Doorbell& bell) {
  return std::make_unique<RemoteReceiver>(*this, from, segment, id, capacity, mailboxes_.inbox(segment, id), bell);
}

std::unique_ptr<Sender> Ranks::sender(int to, int64_t segment, const LinkId& id, int64_t capacity, Doorbell& bell) {
  return std::make_unique<RemoteSender>(*this, to, segment, id, capacity, mailboxes_.outbox(segment, id), bell);
}

}  // namespace gyre
