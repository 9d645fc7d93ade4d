#include "gyre/launch/signal_queue.h"

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "gyre/core/error.h"

namespace gyre {

SignalQueue::SignalQueue() {
  sigset_t queued;
  sigemptyset(&queued);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&queued, number);
  struct sigaction hangup {};
  if (::sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) sigaddset(&queued, SIGHUP);
  descriptor_ = Descriptor(::signalfd(-1, &queued, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor_.ok()) throw RunError(fmt::format("signals cannot be received: {}", std::strerror(errno)));
  ::pthread_sigmask(SIG_BLOCK, &queued, &mask_before_);
}

SignalQueue::~SignalQueue() {
  while (next() != 0) {
  }
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

int SignalQueue::next() {
  signalfd_siginfo info{};
  return ::read(descriptor_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

}  // namespace gyre
