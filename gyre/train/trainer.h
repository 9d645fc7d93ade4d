// gyre train: one run from its configuration to its last checkpoint, in segments between drain points.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "gyre/build/devices.h"
#include "gyre/config/config.h"
#include "gyre/core/error.h"
#include "gyre/core/file_system.h"
#include "gyre/report/metrics.h"
#include "gyre/report/progress.h"

namespace gyre {

class Ranks;

struct TrainOptions {
  std::filesystem::path config;        // empty with `resume`: the run's own
  std::vector<std::string> overrides;  // "table.key=value"
  std::filesystem::path out;
  bool resume = false;
  bool begun = false;  // with `resume`: the run is known to have begun, so it does not begin where none is found
  // Called once the directory is this run's, before anything is written there: it had no run, or `resume` continues
  // what it has. Null: nobody wants to know.
  std::function<void()> on_claimed = {};
  std::function<void()> on_begun = {};  // called once the run has begun, or continues. Null: nobody wants to know
  std::filesystem::path trace;          // where to write this session's timeline; empty: nowhere
  std::stop_token stop;                 // Ctrl-C: drain, save, return
  // Whether a save has been requested since the last call. Called when an update or a segment ends. Null: never.
  std::function<bool()> take_save_request = {};
  // Ends the process. Called when a drain is stuck: a thread that hangs cannot be joined, nor its pipeline destroyed.
  // If null, the run waits.
  std::function<void(const Error&)> abandon;
  FileSystem& files = system_files();
  // The processes that train the run together, which have not met yet; null: this one alone. Only rank 0 reports; the
  // others' results say no more than whether the run has finished.
  Ranks* ranks = nullptr;
  HostProcess process = {};  // this process among those of its host
};

// How a session ended: what its metrics say of that, and more.
struct TrainResult : MetricsEnd {
  bool finished = false;        // false: interrupted, saved, and can be resumed
  bool is_past_target = false;  // the run had made more updates than were asked for, and nothing was done
  int64_t parameters = 0;
  // Set if the run is complete and saved, but its trace or costs could not be written.
  std::exception_ptr fault_afterwards = {};
};

// Throws InputError before anything is written, and RunError if the run had to stop (its checkpoints are whole). On
// ranks other than 0 ToldElsewhere if rank 0 reports the error.
TrainResult train(const TrainOptions& options, Progress& progress);

// Does what train() does before its first update, but writes and locks nothing. A new run's tensors are not allocated;
// a checkpoint is read and restored. Returns false if the run to resume has nothing left to do. Throws as train() does,
// and reports faults of the configuration before a run that exists already.
bool check_run(const TrainOptions& options, Progress& progress);

}  // namespace gyre
