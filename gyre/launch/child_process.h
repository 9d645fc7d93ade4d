// A program that this one has started.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace gyre {

struct ChildOptions {
  std::vector<std::string> words;                              // the program's path, and what it is given
  std::vector<std::pair<std::string, std::string>> variables;  // of its environment, besides those of this process
  int out = STDOUT_FILENO, errors = STDERR_FILENO;             // descriptors for its output
};

// How it has ended: with an exit code, or by a signal.
struct ChildEnd {
  int code = 0;
  int signal = 0;  // 0: none
};

// A child can be waited for together with others. It does not outlive the thread that has started it, however that
// ends. It reads nothing, and is a process group of its own: a terminal's Ctrl-C reaches this process alone, which
// passes it on.
class ChildProcess {
 public:
  // RunError when it cannot be started.
  explicit ChildProcess(ChildOptions options);
  // Kills it if it was not reaped.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Readable once it has ended.
  pollfd poll_entry() const { return {descriptor_, POLLIN, 0}; }
  // Nothing happens if it has ended. Any thread.
  void signal(int number) const;
  // Waits for its end; to be called once.
  ChildEnd reap();

 private:
  pid_t process_;
  int descriptor_;  // the process itself: its number may be another's once it was reaped
  bool reaped_ = false;
};

// What a child has said last, in a log of what it said: from byte `begin` on.
std::string last_line(const std::filesystem::path& log, uint64_t begin = 0);

}  // namespace gyre
