// Signals to this process as a queue that can be waited for beside other things.
#pragma once

#include <poll.h>
#include <signal.h>

namespace gyre {

// While one exists, these signals do nothing by themselves: SIGINT, SIGTERM, SIGUSR1, and SIGHUP unless it is ignored,
// as nohup does. Make it before other threads.
class SignalQueue {
 public:
  // RunError when the system has no more descriptors.
  SignalQueue();
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  // Readable when there is one.
  pollfd poll_entry() const { return {descriptor_, POLLIN, 0}; }
  // The next one, 0 if there is none.
  int next();

 private:
  sigset_t mask_before_;
  int descriptor_;
};

}  // namespace gyre
