#include "interrupts.h"

#include <csignal>
#include <cstdlib>
#include <utility>

#include "gyre/core/exit_code.h"

namespace gyre::app {
namespace {

int wake_up() {
  return SIGRTMIN;  // no constant in glibc
}

int exit_code_after(int signal) {
  return signal == SIGINT ? kInterrupted : kTerminated;
}

extern "C" void exit_at_once(int signal) {
  std::_Exit(exit_code_after(signal));
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void change_mask(int how, int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(how, &set, nullptr);
}

}  // namespace

void hold_signals() {
  change_mask(SIG_BLOCK, SIGHUP);
  change_mask(SIG_BLOCK, SIGUSR1);
}

void heed_hangup() {
  if (!is_ignored(SIGHUP)) std::signal(SIGHUP, exit_at_once);
  change_mask(SIG_UNBLOCK, SIGHUP);
}

Interrupts::Interrupts(SecondSignal second, std::function<void()> on_save)
    : second_(second), on_save_(std::move(on_save)) {
  sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (signal == SIGHUP && is_ignored(signal)) continue;
    sigaddset(&signals_, signal);
    // sigwait() does not see ignored signals, and a shell starts background jobs with SIGINT ignored.
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    ::sigaction(signal, &usual, &actions_before_[signal]);
  }
  waited_ = signals_;
  sigaddset(&waited_, wake_up());
  if (on_save_) sigaddset(&waited_, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &waited_, &mask_before_);
  watcher_ = std::jthread([this] { watch(); });
}

Interrupts::~Interrupts() {
  ending_ = true;
  pthread_kill(watcher_.native_handle(), wake_up());
  watcher_.join();
  for (const auto& [signal, action] : actions_before_) ::sigaction(signal, &action, nullptr);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

int Interrupts::next_signal() const {
  for (;;) {
    int signal = 0;
    if (sigwait(&waited_, &signal) != 0) continue;
    if (signal == SIGUSR1) {
      on_save_();
    } else if (signal != wake_up()) {
      return signal;
    } else if (ending_) {
      return 0;
    }
  }
}

void Interrupts::watch() {
  const int first = next_signal();
  if (first == 0) return;
  exit_code_ = exit_code_after(first);
  if (second_ == SecondSignal::IsTheLaunchers) {
    stop_.request_stop();
    while (next_signal() != 0) {
    }
    return;
  }
  // A callback of the stop token may write to a reader that is stuck; a second signal must end the process even then.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (sigismember(&signals_, signal) == 1) std::signal(signal, exit_at_once);
  }
  pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
  stop_.request_stop();
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);

  const int signal = next_signal();
  if (signal == 0) return;
  abandon_.request_stop();
  std::_Exit(exit_code_after(signal));
}

}  // namespace gyre::app
