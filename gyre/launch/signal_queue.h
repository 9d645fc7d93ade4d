// Signals to this process as a queue that poll() can wait for.
#pragma once

#include <poll.h>
#include <signal.h>

#include "gyre/core/descriptor.h"

namespace gyre {

// While one exists, these signals are blocked and only queued: SIGINT, SIGTERM, SIGUSR1, and SIGHUP unless it is
// ignored, as under nohup. Construct it before starting other threads, which inherit the blocking.
class SignalQueue {
 public:
  // Throws RunError if the system has no more descriptors.
  SignalQueue();
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  // For poll(): readable when a signal is queued.
  pollfd poll_entry() const { return {descriptor_.get(), POLLIN, 0}; }
  // Takes the next signal; 0 if there is none.
  int next();

 private:
  sigset_t mask_before_;
  Descriptor descriptor_;
};

}  // namespace gyre
