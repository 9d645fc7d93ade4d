#include "interrupts.h"

#include <csignal>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "gyre/core/exit_code.h"
#include "gyre/core/stop_signals.h"

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

// Requests a stop on a thread of its own: a callback of the token may write to a reader that is stuck, and a second
// signal must end the process even then.
void Interrupts::request_stop() {
  try {
    stopper_ = std::jthread([this] { stop_.request_stop(); });
  } catch (const std::system_error&) {  // the system has no more threads
    stop_.request_stop();
  }
}

void Interrupts::watch() {
  StopSignals signals;
  for (int signal = next_signal(); signal != 0; signal = next_signal()) {
    switch (signals.take(signal, StopSignals::Clock::now())) {
      case StopSignals::Meaning::Stop:
        exit_code_ = exit_code_after(signal);
        request_stop();
        break;
      case StopSignals::Meaning::Same:
        break;
      case StopSignals::Meaning::EndAtOnce:
        if (second_ == SecondSignal::IsTheLaunchers) break;
        abandon_.request_stop();
        std::_Exit(exit_code_after(signal));
    }
  }
}

}  // namespace gyre::app
