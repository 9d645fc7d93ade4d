// Signals that ask for the end of a command: SIGINT (Ctrl-C), SIGTERM, and SIGHUP unless it is ignored already, as by
// nohup. The first one requests an orderly end; the second one, as StopSignals counts them, ends the process, unless
// that is left to its launcher.
#pragma once

#include <signal.h>

#include <atomic>
#include <functional>
#include <map>
#include <stop_token>
#include <thread>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/stopped.h"

namespace gyre::app {

// Loading libtorch delays main(). Until then a hang-up would end the process with exit code 129, and SIGUSR1 would end
// a process that should save. So hold_signals() blocks both before gyre executes gyre-engine. In main() both programs
// call heed_hangup(): a hang-up then ends the process as SIGTERM does (143), unless it is ignored or there are
// Interrupts. SIGUSR1 stays blocked until there are Interrupts that take it.
void hold_signals();
void heed_hangup();

// Who acts on a second signal. A launcher of several processes passes on the signals that it gets, and whatever has
// signalled the launcher may have signalled all of them as well, as Slurm and a terminal do: that is no request for an
// immediate end. Whoever wants one signals the launcher again, which then kills them.
enum class SecondSignal { EndsThisProcess, IsTheLaunchers };

// While one exists, these signals are blocked in every thread that is started, and a thread of its own waits for them.
// So callbacks of the stop token may do anything, which a signal handler may not. Create it before other threads. Its
// end brings back what the signals did before.
class Interrupts {
 public:
  // on_save: for a command that can save and continue; called for SIGUSR1, on the thread that waits.
  explicit Interrupts(SecondSignal second = SecondSignal::EndsThisProcess, std::function<void()> on_save = {});
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Requested by the first signal.
  std::stop_token stop() const { return stop_.get_token(); }
  // Requested by the second, just before it ends the process.
  std::stop_token abandon() const { return abandon_.get_token(); }
  // The exit code of a command that has stopped in order: 130 after SIGINT, 143 after the others. 0: no signal came.
  int exit_code() const { return exit_code_.load(); }

 private:
  void watch();
  void request_stop();
  int next_signal() const;  // the next that asks for the end; 0 when the watcher is to end

  SecondSignal second_;
  std::function<void()> on_save_;
  sigset_t signals_;  // that ask for the end
  sigset_t waited_;   // those, SIGUSR1 with on_save, and the one by which the destructor ends the watcher
  sigset_t mask_before_;
  std::map<int, struct sigaction> actions_before_;  // by signal
  std::stop_source stop_, abandon_;
  std::atomic<int> exit_code_ = 0;
  std::atomic<bool> ending_ = false;
  std::jthread watcher_, stopper_;
};

// Calls make(stop token), which throws Stopped when a signal asks for the end; the exit code is then the signal's.
template <typename Make>
auto make_unless_stopped(Make&& make) {
  const Interrupts interrupts;
  try {
    return std::forward<Make>(make)(interrupts.stop());
  } catch (const Stopped& stopped) {
    throw Error(stopped.what(), interrupts.exit_code());
  }
}

}  // namespace gyre::app
