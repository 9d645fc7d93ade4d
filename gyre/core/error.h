// Errors: every failure a user can meet is a gyre::Error that says what is wrong, where, and what to do, in one line.
#pragma once

#include <stdexcept>
#include <string>

#include "gyre/core/exit_code.h"

namespace gyre {

// The base of every exception gyre throws on purpose. `exit_code` is what the command line returns for it.
class Error : public std::runtime_error {
 public:
  Error(const std::string& message, int exit_code) : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// Something the user gave is wrong: a flag, a configuration key, a file. Exit 2; nothing has been changed.
class InputError : public Error {
 public:
  explicit InputError(const std::string& message) : Error(message, kBadInput) {}
};

// A run that began and could not go on: a stall, for example. Exit 1; earlier checkpoints are whole.
class RunError : public Error {
 public:
  explicit RunError(const std::string& message) : RunError(message, kFailed) {}

 protected:
  RunError(const std::string& message, int exit_code) : Error(message, exit_code) {}
};

// A run whose loss or gradient is no longer finite. Exit 3: running it again will not help, other settings may.
class Divergence : public RunError {
 public:
  explicit Divergence(const std::string& message) : RunError(message, kDiverged) {}
};

// What is to be written has no room: the disk is full, or a quota or a limit of file sizes is reached. Exit 4: another
// attempt fails the same way until somebody makes room.
class NoRoom : public RunError {
 public:
  explicit NoRoom(const std::string& message) : RunError(message, kNoRoom) {}
};

// Throws RunError, or NoRoom if that was the reason.
[[noreturn]] inline void throw_run_error(const std::string& message, bool no_room) {
  if (no_room) throw NoRoom(message);
  throw RunError(message);
}

inline bool is_no_room(const std::exception& error) {
  return dynamic_cast<const NoRoom*>(&error) != nullptr;
}

// This process ends because of a failure that another process of the same run reports.
class ToldElsewhere : public Error {
 public:
  explicit ToldElsewhere(int exit_code) : Error("another process of the run tells what is wrong", exit_code) {}
};

}  // namespace gyre
