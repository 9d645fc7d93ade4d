#include "gyre/runtime/ranks/peer.h"

#include <ATen/ATen.h>

#include <system_error>
#include <utility>

#include "gyre/core/error.h"

namespace gyre {
namespace {

constexpr int kSends = 3;     // frames under way: one travels while the next is filled
constexpr int kReceives = 3;  // as many are posted, so that those find memory at the other side

at::Tensor make_frame() {
  return at::empty({static_cast<int64_t>(kFrameBytes)}, at::kByte);
}
std::byte* bytes_of(const at::Tensor& frame) {
  return static_cast<std::byte*>(frame.data_ptr());
}

}  // namespace

Peer::Peer(std::unique_ptr<Wire> wire, Callbacks callbacks) : wire_(std::move(wire)), callbacks_(std::move(callbacks)) {
  for (int i = 0; i < kSends; ++i) free_.push_back(make_frame());
  for (int i = 0; i < kReceives; ++i) post_receive(make_frame());
}

void Peer::start() {
  try {
    sender_ = std::jthread([this] { send_on(); });
    receiver_ = std::jthread([this] { receive_on(); });
  } catch (const std::system_error&) {  // the one thread would wait for what only the other can do
    give_up();
    throw;
  }
}

Peer::~Peer() {
  give_up();
  join();
}

void Peer::send(Envelope envelope) {
  FrameWriter writer(std::move(envelope));  // outside the lock: it may wait for a device
  const std::lock_guard lock(mutex_);
  if (gone_ || closed_) return;
  outgoing_.push_back(std::move(writer));
  post_sends();
}

// Sends one goodbye for each frame that the other side has posted memory for. The first stops it from posting more; the
// others use up what is still posted, so that nothing is left over.
void Peer::close() {
  const std::lock_guard lock(mutex_);
  if (gone_ || closed_) return;
  for (int i = 0; i < kReceives; ++i) {
    Envelope goodbye;
    goodbye.kind = Envelope::Kind::Goodbye;
    outgoing_.emplace_back(std::move(goodbye));
  }
  closed_ = true;
  post_sends();
}

void Peer::join() {
  if (sender_.joinable()) sender_.join();
  if (receiver_.joinable()) receiver_.join();
}

void Peer::give_up() {
  const std::lock_guard lock(mutex_);
  gone_ = true;
  for (auto* posted : {&sends_, &receives_}) {
    for (Posted& one : *posted) one.transfer->abort();
  }
  changed_.notify_all();
}

// Call with the mutex held.
void Peer::post_sends() {
  while (!outgoing_.empty() && !free_.empty() && !gone_) {
    at::Tensor frame = std::move(free_.back());
    free_.pop_back();
    const size_t used = outgoing_.front().next(bytes_of(frame));
    if (outgoing_.front().done()) outgoing_.pop_front();
    try {
      auto transfer = wire_->send(frame.narrow(0, 0, static_cast<int64_t>(used)));
      sends_.push_back({std::move(frame), std::move(transfer)});
    } catch (const Error&) {  // the receiving thread notices it too, and reports it
      return;
    }
  }
  changed_.notify_all();
}

void Peer::post_receive(at::Tensor frame) {
  const std::lock_guard lock(mutex_);
  if (gone_) return;
  auto transfer = wire_->receive(frame);
  receives_.push_back({std::move(frame), std::move(transfer)});
}

// The thread that waits until frames have been sent, and then sends what was waiting for a free frame.
void Peer::send_on() {
  try {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return gone_ || !sends_.empty() || closed_; });
      if (gone_ || sends_.empty()) return;
      Transfer& oldest = *sends_.front().transfer;
      lock.unlock();
      oldest.wait();
      lock.lock();
      free_.push_back(std::move(sends_.front().frame));
      sends_.pop_front();
      post_sends();
    }
  } catch (const std::exception& error) {
    lose(error.what());
  }
}

// The thread that receives frames and delivers envelopes.
void Peer::receive_on() {
  FrameReader reader;
  bool open = true;
  try {
    for (;;) {
      std::unique_lock lock(mutex_);
      if (gone_ || receives_.empty()) return;
      Transfer& oldest = *receives_.front().transfer;
      lock.unlock();
      oldest.wait();
      lock.lock();
      at::Tensor frame = std::move(receives_.front().frame);
      receives_.pop_front();
      lock.unlock();
      std::optional<Envelope> envelope = reader.next(bytes_of(frame));
      callbacks_.heard(!envelope);
      const bool goodbye = envelope && envelope->kind == Envelope::Kind::Goodbye;
      const bool first_goodbye = goodbye && std::exchange(open, false);
      if (open) post_receive(std::move(frame));
      if (envelope && (open || first_goodbye)) callbacks_.deliver(std::move(*envelope));
    }
  } catch (const std::exception& error) {
    lose(error.what());
  }
}

void Peer::lose(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(gone_, true)) return;
    for (auto* posted : {&sends_, &receives_}) {
      for (Posted& one : *posted) one.transfer->abort();
    }
    changed_.notify_all();
  }
  callbacks_.lost(why);
}

}  // namespace gyre
