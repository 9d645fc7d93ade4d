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
  // Whether a save has been asked for since the last call; asked at the ends of updates. Null: never.
  std::function<bool()> take_save_request = {};
  // Ends the process. Called when a drain is stuck: a thread that does not come back cannot be joined, nor its pipeline
  // destroyed. Without it the run waits.
  std::function<void(const Error&)> abandon;
  FileSystem& files = system_files();
  // The processes that train the run together, which have not met yet; null: this one alone. Only rank 0 tells and
  // writes; the others' results say no more than whether the run has finished.
  Ranks* ranks = nullptr;
};

struct TrainResult {
  bool finished = false;        // false: interrupted, saved, and can be resumed
  bool is_past_target = false;  // the run had made more updates than were asked for, and nothing was done
  // The last thing that went wrong, where the run is complete and saved: a trace or costs that could not be written.
  std::exception_ptr fault_afterwards;
  int64_t step = 0;
  int64_t parameters = 0;
  int64_t tokens = 0;                            // of the whole run
  double loss = 0;                               // of the last step
  std::optional<double> val_loss, ema_val_loss;  // the second in the averages of the weights, where there are any
  double tokens_per_second = 0;                  // while training, this session
  std::optional<double> bubble_fraction;  // share of worker time spent waiting; only where workers run side by side
  double seconds = 0;
  double save_wait_seconds = 0;   // in which training stood still for checkpoints
  double save_write_seconds = 0;  // in which they were written, beside training or not
};

// Errors: InputError before anything is written; RunError when the run had to stop (its checkpoints are whole).
TrainResult train(const TrainOptions& options, Progress& progress);

// Does what train() does before its first update, but writes and locks nothing. A new run's tensors are not allocated;
// a checkpoint is read and restored. False where the run to resume has nothing left to do. Errors: as train()'s, and
// what is wrong with the configuration before that a run is there already.
bool check(const TrainOptions& options, Progress& progress);

}  // namespace gyre
