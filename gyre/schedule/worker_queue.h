// The workers of a timeline that can continue, and what the others wait for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "gyre/schedule/message_kind.h"

namespace gyre {

// A message of a kind, and its microbatch; for sums and versions, its stage.
struct AwaitedMessage {
  MessageKind kind;
  int64_t number;
  bool operator==(const AwaitedMessage&) const = default;
};

class WorkerQueue {
 public:
  // All workers can continue.
  explicit WorkerQueue(int workers)
      : queued_(static_cast<size_t>(workers), true), awaits_(static_cast<size_t>(workers)) {
    for (int worker = 0; worker < workers; ++worker) runnable_.push_back(worker);
  }

  bool empty() const { return runnable_.empty(); }
  // Takes the worker woken last: what it shares with the sender is still in the cache.
  int take() {
    const int worker = runnable_.back();
    runnable_.pop_back();
    queued_[worker] = false;
    awaits_[worker].number = kNothing;
    return worker;
  }
  // Puts the worker behind all others.
  void put_back(int worker) {
    queued_[worker] = true;
    runnable_.push_front(worker);
  }
  // The worker is not taken again until the message wakes it.
  void await(int worker, const AwaitedMessage& message) { awaits_[worker] = message; }
  // Wakes the worker only if it waits for this message, so never the one that runs: an update reaches replicas on all
  // workers, most of which wait for something else.
  void wake(int worker, const AwaitedMessage& message) {
    if (queued_[worker] || awaits_[worker] != message) return;
    queued_[worker] = true;
    runnable_.push_back(worker);
  }

 private:
  static constexpr int64_t kNothing = -1;

  std::deque<int> runnable_;
  std::vector<bool> queued_;            // [worker]
  std::vector<AwaitedMessage> awaits_;  // [worker], of those that are not queued
};

}  // namespace gyre
