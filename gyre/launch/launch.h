// The ranks of a run as processes of this host: started, watched, told of signals, and started again when one fails.
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
  std::vector<std::string> command;  // the program's path, and what every rank is given
  std::vector<std::string> again;    // the same for ranks that are started again
  int max_restarts = 0;
  // Where the output of ranks other than 0 goes, a file for each. Empty: to files that are removed at the end, but for
  // one that a message names.
  std::filesystem::path logs;
  std::filesystem::path temporary = "/tmp";  // for what is there while they run
  // When a rank has failed, so long may the others go on: they notice, and say why they end.
  std::chrono::milliseconds patience = std::chrono::seconds(5);
  std::function<void(const std::string&)> say;  // a line about what has gone wrong
};

// Starts the ranks, which learn theirs as find_rank reads it, and waits for the end of all. Rank 0 has this process's
// output. The ranks meet in a new directory that only this user may enter; nothing listens on a network.
// The first signal to stop is passed on to all ranks, the second kills them; SIGUSR1 is passed on to rank 0.
// Returns 0 if all ranks ended so; else the exit code of the first that failed, 1 if a signal ended it; after a signal
// to stop 130 (SIGINT) or 143. Ranks that failed are started again, all of them, unless another attempt cannot help:
// bad input (2), divergence (3), a signal to stop. Errors: RunError where they cannot be started.
int launch_ranks(const LaunchOptions& options, SignalQueue& signals);

}  // namespace gyre
