// Starts a program as a child process, and waits for it.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "gyre/core/descriptor.h"

namespace gyre {

struct ChildOptions {
  std::vector<std::string> words;                              // the program's path and its arguments
  std::vector<std::pair<std::string, std::string>> variables;  // set in addition to this process's environment
  int out = STDOUT_FILENO, errors = STDERR_FILENO;             // descriptors for its output
};

// How a process has ended: with an exit code, or by a signal.
struct ChildEnd {
  int code = 0;
  int signal = 0;  // 0: none
};
// As in "was killed by SIGKILL" and "failed with exit code 1".
std::string describe(const ChildEnd& end);

// A child process, which poll() can wait for. It is killed when the thread that started it ends, however that ends. Its
// standard input is empty. It has its own process group: a terminal's Ctrl-C reaches this process alone, which passes
// it on.
class ChildProcess {
 public:
  // Throws RunError if it cannot be started.
  explicit ChildProcess(ChildOptions options);
  // Kills and reaps it if it was not reaped.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // For poll(): readable once the child has ended.
  pollfd poll_entry() const { return {descriptor_.get(), POLLIN, 0}; }
  // Sends a signal; does nothing if the child has ended. From any thread.
  void signal(int number) const;
  // Waits for its end. Call once.
  ChildEnd reap();

 private:
  pid_t process_;
  Descriptor descriptor_;  // a pidfd: after reaping, the process id may belong to another process
  bool reaped_ = false;
};

// The last line, without its line end, of a log from byte `begin` on; empty if there is none.
std::string last_line(const std::filesystem::path& log, uint64_t begin = 0);

}  // namespace gyre
