// Starts the ranks of a run as processes on this host, watches them, passes signals on, and starts them again when one
// fails.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "gyre/launch/signal_queue.h"

namespace gyre {

struct LaunchOptions {
  int ranks = 1;
  std::vector<std::string> command;  // the program's path, and every rank's arguments
  std::vector<std::string> again;    // the same for a restart, once the run has a place of its own (kNotClaimedMark)
  int max_restarts = 0;
  // Directory for the output of ranks other than 0, a file for each. Empty: a temporary one, which is removed at the
  // end unless a message names a file in it.
  std::filesystem::path logs;
  std::filesystem::path temporary = "/tmp";  // for files that exist while the ranks run
  // How long the other ranks may go on when one has failed, so that they notice it and report why they end; then they
  // are killed.
  std::chrono::milliseconds patience = std::chrono::seconds(5);
  std::chrono::milliseconds same_signal_within = std::chrono::seconds(1);  // as in StopSignals
  std::function<void(const std::string&)> say;                             // called with one line about what went wrong
};

// Starts the ranks, with the environment variables that find_rank reads, and waits until all have ended. Rank 0 writes
// to this process's output. The ranks meet in a new directory that only this user may enter; nothing listens on a
// network. The first signal to stop is passed on to all ranks, the second, as StopSignals counts them, kills them;
// SIGUSR1 is passed on to rank 0. Returns 0 if all ranks returned 0; otherwise the exit code of the first that failed
// (1 counts only if no rank failed otherwise), or 1 if a signal ended it; after a signal to stop 130 (SIGINT) or 143.
// When a rank has failed, all are started again, up to max_restarts times, unless that cannot help: bad input (2),
// divergence (3), no room on a disk (4), a signal to stop, or a failure of rank 0 when all was done (kDoneMark), as to
// print the result. Those that are started again are told if the run had begun (kNotBegunMark). Throws RunError if they
// cannot be started, NoRoom if `temporary` has none for the notes by which they meet.
int launch_ranks(const LaunchOptions& options, SignalQueue& signals);

}  // namespace gyre
