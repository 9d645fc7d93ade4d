// Conducts a study: trials of learning rates, then the runs that count, then what they show.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "gyre/study/results.h"
#include "gyre/study/study.h"

namespace gyre {

struct ConductOptions {
  std::filesystem::path root;     // the study's directory; created
  std::filesystem::path program;  // gyre-engine
  int jobs = 0;                   // runs side by side; 0: as many as `cores` are enough for
  int cores = 1;
  bool report_only = false;                     // run nothing: arms without a finished run are left out
  std::stop_token stop, abandon;                // as in LauncherOptions
  std::function<void(const std::string&)> say;  // a line of progress
};

// The cores that a run keeps busy: one for each thread of every worker, of which the schedule knows how many there are.
int64_t busy_cores(const Config& config);

// Nothing if it was stopped; the same call continues it. Errors: InputError, RunError.
std::optional<StudyResult> conduct(const Study& study, const ConductOptions& options);

}  // namespace gyre
