// Signals that ask for the end of a command: SIGINT (Ctrl-C), SIGTERM, and SIGHUP unless it is ignored already, as
// nohup does. The first one asks for an orderly end, the second one ends the process, unless that is its launcher's.
#pragma once

#include <signal.h>

#include <atomic>
#include <functional>
#include <stop_token>
#include <thread>

namespace gyre::app {

// From the start to main(), which libtorch's loading puts off, a hang-up would end the process with an exit code of its
// own (129), and SIGUSR1 would end one that is to save. Before one program becomes the other the first has both wait.
// In main() each lets a hang-up end the process as SIGTERM does (143), which is so from then on unless it is ignored or
// there are Interrupts; SIGUSR1 waits for these.
void hold_signals();
void heed_hangup();

// Whose a second signal is. A launcher of several processes passes on what it gets, and what has signalled the launcher
// may have signalled all of them as well, as Slurm and a terminal do: that is no wish for a hasty end. Who has one
// tells the launcher, and it kills.
enum class SecondSignal { EndsThisProcess, IsTheLaunchers };

// While one exists, these signals are blocked in every thread that is started, and a thread of its own waits for them:
// what is asked to stop by a stop token may do anything, which a signal handler may not. Make it before other threads.
class Interrupts {
 public:
  // on_save: for a command that can save and go on, which SIGUSR1 asks it to; called on the thread that waits.
  explicit Interrupts(SecondSignal second = SecondSignal::EndsThisProcess, std::function<void()> on_save = {});
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Requested by the first signal.
  std::stop_token stop() const { return stop_.get_token(); }
  // Requested by the second, just before it ends the process.
  std::stop_token abandon() const { return abandon_.get_token(); }
  // Of a command that has stopped in order: 130 after SIGINT, 143 after the others.
  int exit_code() const { return exit_code_.load(); }

 private:
  void watch();
  int next_signal() const;  // that asks for the end; 0 when the watcher is to end

  SecondSignal second_;
  std::function<void()> on_save_;
  sigset_t signals_;  // that ask for the end
  sigset_t waited_;   // those, SIGUSR1, and the one by which the destructor ends the watcher
  sigset_t mask_before_;
  std::stop_source stop_, abandon_;
  std::atomic<int> exit_code_ = 0;
  std::atomic<bool> ending_ = false;
  std::jthread watcher_;
};

}  // namespace gyre::app
