// Ctrl-C: the first asks for an orderly end, the second gets the system's default, which is to die.
#include <csignal>

#include "command.h"

namespace gyre::app {
namespace {

// A signal handler can reach nothing but a static; this is the one in the program.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int signal) {
  interrupted.store(true);
  std::signal(signal, SIG_DFL);
}

}  // namespace

const std::atomic<bool>& install_interrupt_handler() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  return interrupted;
}

}  // namespace gyre::app
