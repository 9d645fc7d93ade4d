// gyre train: one run from its configuration to its last checkpoint, in segments between drain points.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "gyre/build/devices.h"
#include "gyre/config/config.h"
#include "gyre/core/error.h"
#include "gyre/core/file_system.h"
#include "gyre/report/progress.h"

namespace gyre {

class Ranks;

struct TrainOptions {
  std::filesystem::path config;        // empty with `resume`: the run's own
  std::vector<std::string> overrides;  // "table.key=value"
  std::filesystem::path out;
  bool resume = false;
  std::filesystem::path trace;  // where to write this session's timeline; empty: nowhere
  std::stop_token stop;         // Ctrl-C: drain, save, return
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

struct TrainResult {
  bool finished = false;        // false: interrupted, saved, and can be resumed
  bool is_past_target = false;  // the run had made more updates than were asked for, and nothing was done
  // Set if the run is complete and saved, but its trace or costs could not be written.
  std::exception_ptr fault_afterwards;
  int64_t step = 0;
  int64_t parameters = 0;
  int64_t tokens = 0;                            // of the whole run
  double loss = 0;                               // of the last step
  std::optional<double> val_loss, ema_val_loss;  // the second with the averaged weights, if there are any
  double tokens_per_second = 0;                  // of this session, while training
  std::optional<double> bubble_fraction;  // share of worker time spent waiting; only where workers run side by side
  double seconds = 0;
  double save_wait_seconds = 0;   // for which training stood still for checkpoints
  double save_write_seconds = 0;  // for which they were written, in the background or not
};

// Throws InputError before anything is written, and RunError if the run had to stop (its checkpoints are whole). On
// ranks other than 0 ToldElsewhere if rank 0 reports the error.
TrainResult train(const TrainOptions& options, Progress& progress);

// Does what train() does before its first update, but writes and locks nothing. A new run's tensors are not allocated;
// a checkpoint is read and restored. Returns false if the run to resume has nothing left to do. Throws as train() does,
// and reports faults of the configuration before a run that exists already.
bool check_run(const TrainOptions& options, Progress& progress);

}  // namespace gyre
