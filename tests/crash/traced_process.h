// A process under ptrace(2), which stops at every system call of each of its threads, and is killed at a chosen one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gyre::crash {

// System calls in the order in which they began, as the tracer saw it.
struct Calls {
  int64_t all = 0;
  int64_t of_files = 0;  // those that make, change, sync, lock, rename or remove files
};

// SIGKILL at the call of this number, counted from 1.
struct KillPoint {
  bool of_files = false;  // counts those alone
  int64_t number = 0;
  bool performed = false;  // after the call was performed; else before
};

struct Ended {
  std::optional<int> code;  // the exit status; nothing: it was killed
  Calls calls;
  std::string killed_at;  // before or after which call, and the call's file if it has one
  std::string killed_in;  // the call, if it is one of files
  std::string output;     // standard output
  std::string messages;   // standard error
};

// Whether this system lets a process trace its children.
bool can_trace();

// Runs `command` in `directory` to its end or to `kill`. RunError when it cannot be started or traced.
Ended run_traced(const std::vector<std::string>& command, const std::filesystem::path& directory,
                 const std::optional<KillPoint>& kill = std::nullopt);

}  // namespace gyre::crash
