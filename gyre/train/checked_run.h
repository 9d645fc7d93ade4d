// A run that has been checked: everything that can be found wrong before anything is allocated or written.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "gyre/build/batches.h"
#include "gyre/config/config.h"
#include "gyre/data/sources.h"
#include "gyre/schedule/schedule.h"
#include "gyre/train/done_before.h"

namespace gyre {

// The faults that CheckedRun reports together, of a configuration whose keys are at fault too.
void add_faults_of_run(const Config& config, const WasRead& was_read, Faults& faults);

// The reading of all tokens, which takes minutes if there are many.
struct DataReading {
  // Called before, when nothing was found wrong but what may be in the tokens; the vocabulary is known. May throw what
  // the caller finds wrong. Null: nobody wants to know.
  std::function<void(const Config&, const Dataset&)> begins = {};
  std::stop_token stop = {};
};

struct CheckedRun {
  // Opens the data, builds the schedule and predicts the memory. Throws InputError; what is wrong with the data's
  // files, the vocabulary, the schedule, threads, clipping and the optimizer is reported together, one line each.
  // Stopped (core/stopped.h) is thrown if the reading is stopped.
  explicit CheckedRun(const Config& config, DoneBefore before = {}, const DataReading& reading = {});
  CheckedRun(const CheckedRun&) = delete;  // the batches refer to `dataset`
  CheckedRun& operator=(const CheckedRun&) = delete;

  // The run will train on what comes in its data after what the run of the record has used.
  void continue_data(const CheckpointRecord& from);

  Config config;  // with its vocabulary known
  std::optional<Dataset> dataset;
  Schedule schedule;
  std::unique_ptr<BatchSource> train_batches;
  MixtureRecord mixture;          // of the data's sources from now on; empty if there is only one
  ValidationBatches val_batches;  // empty unless the run evaluates
  bool may_copy = false;          // checkpoints may be written from a copy in memory
  std::string summary;            // a few lines for the user
};

}  // namespace gyre
