// Which workers can go on in a timeline, and what the others wait for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "gyre/schedule/message_kind.h"

namespace gyre {

// A message of a kind: of a microbatch, or, for reductions and broadcasts, of a stage.
struct AwaitedMessage {
  MessageKind kind;
  int64_t number;
  bool operator==(const AwaitedMessage&) const = default;
};

class WorkerQueue {
 public:
  // All can go on.
  explicit WorkerQueue(int workers)
      : queued_(static_cast<size_t>(workers), true), awaits_(static_cast<size_t>(workers)) {
    for (int worker = 0; worker < workers; ++worker) runnable_.push_back(worker);
  }

  bool empty() const { return runnable_.empty(); }
  // The worker woken last: what it shares with the sender is still in the cache.
  int take() {
    const int worker = runnable_.back();
    runnable_.pop_back();
    queued_[worker] = false;
    return worker;
  }
  // Behind all others.
  void put_back(int worker) {
    queued_[worker] = true;
    runnable_.push_front(worker);
  }
  // The worker is to be taken no more until the message wakes it.
  void await(int worker, const AwaitedMessage& message) { awaits_[worker] = message; }
  // Wakes the worker if it is this that it waits for: an update reaches replicas on all workers, and most of them are
  // at something else.
  void wake(int worker, const AwaitedMessage& message) {
    if (queued_[worker] || awaits_[worker] != message) return;
    queued_[worker] = true;
    runnable_.push_back(worker);
  }

 private:
  std::deque<int> runnable_;
  std::vector<bool> queued_;            // [worker]
  std::vector<AwaitedMessage> awaits_;  // [worker], of those that are not queued
};

}  // namespace gyre
