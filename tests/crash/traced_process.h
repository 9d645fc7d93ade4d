// Runs a process under ptrace(2) that stops at every system call of each of its threads, and kills it at a chosen one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gyre::crash {

// Numbers of system calls, counted when the tracer sees them begin.
struct Calls {
  int64_t all = 0;
  int64_t of_files = 0;  // calls that create, change, sync, lock, rename or remove files
};

// SIGKILL at the call with this number, counted from 1.
struct KillPoint {
  bool of_files = false;  // counts only calls that change files
  int64_t number = 0;
  bool performed = false;  // kill after the call was performed, else before it
};

struct Ended {
  std::optional<int> code;  // the exit status; nullopt if it was killed
  Calls calls;
  std::string killed_at;  // "before" or "after", the call, and its file if it has one
  std::string killed_in;  // the call, if it changes files
  std::string output;     // standard output
  std::string messages;   // standard error
};

// Whether this system lets a process trace its children.
bool can_trace();

// Runs `command` in `directory` until it ends or is killed at `kill`. Throws RunError if it cannot be started or
// traced.
Ended run_traced(const std::vector<std::string>& command, const std::filesystem::path& directory,
                 const std::optional<KillPoint>& kill = std::nullopt);

}  // namespace gyre::crash
