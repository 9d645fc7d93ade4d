// A run that has been looked through: all that can be judged before anything is allocated or written.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "gyre/build/batches.h"
#include "gyre/config/config.h"
#include "gyre/data/sources.h"
#include "gyre/schedule/schedule.h"

namespace gyre {

struct CheckedRun {
  // Opens the data, builds the schedule and predicts the memory. InputError with a line for each thing that is wrong.
  explicit CheckedRun(Config config);
  CheckedRun(const CheckedRun&) = delete;  // batches read the dataset
  CheckedRun& operator=(const CheckedRun&) = delete;

  Config config;  // with the data's vocabulary
  std::optional<Dataset> dataset;
  Schedule schedule;
  std::unique_ptr<BatchSource> train_batches;
  ValidationBatches val_batches;  // empty unless the run evaluates
  bool may_copy = false;          // checkpoints may be written from a copy in memory
  std::string summary;            // for people, a few lines
};

}  // namespace gyre
