// Makes a study: runs the trials of learning rates, then the final runs, and collects the results.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "gyre/core/wake_flag.h"
#include "gyre/study/results.h"
#include "gyre/study/study.h"

namespace gyre {

struct RunStudyOptions {
  std::filesystem::path root;     // the study's directory; created
  std::filesystem::path program;  // gyre-engine
  int jobs = 0;                   // parallel runs; 0: as many as `cores` allow
  int cores = 1;
  bool report_only = false;                     // run nothing: arms without a finished run are left out
  std::stop_token stop, abandon;                // as in RunProcessesOptions
  const WakeFlag* save = nullptr;               // likewise
  std::function<void(const std::string&)> say;  // prints a line of progress; may be empty
};

// The number of cores that a run keeps busy: one for each thread of every worker, or of a single worker if the executor
// runs workers in turn.
int64_t busy_cores(const Config& config);

// Returns nothing if the study was stopped; calling again with the same arguments continues it. Errors: InputError,
// RunError.
std::optional<StudyResult> run_study(const Study& study, const RunStudyOptions& options);

}  // namespace gyre
