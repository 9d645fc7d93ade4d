// Runs the runs of a study as processes, several in parallel. A run that has already finished is not run again, and one
// that was begun is resumed, so a stopped study continues where it was.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "gyre/core/wake_flag.h"
#include "gyre/study/study.h"

namespace gyre {

struct RunProcessesOptions {
  std::filesystem::path program;   // gyre-engine
  std::filesystem::path root;      // directory of all runs
  int jobs = 1;                    // number of parallel runs
  std::stop_token stop;            // first Ctrl-C: runs drain and save
  std::stop_token abandon;         // second Ctrl-C: runs are killed
  const WakeFlag* save = nullptr;  // raised: the runs under way save and go on; null: never
};

// The state of a run.
enum class RunStatus { Absent, Begun, Finished, Diverged };
// Throws InputError if `directory` has a run that was made with other settings.
RunStatus status_of(const std::filesystem::path& directory, const Config& config);
// The checksums of the data that a run was trained on, as its newest checkpoint has them; empty if none can be read.
std::map<std::string, std::string> data_of(const std::filesystem::path& directory);

// Checks the runs that are not there yet, as `gyre train --check` does, so that what one of the last would be refused
// for is reported before the first begins. Returns false if it was stopped. Errors: InputError, RunError.
bool check_runs(const std::vector<StudyRun>& runs, const RunProcessesOptions& options);

// Calls `ended` for each run when it ends, in the order in which they end. Returns false if it was stopped.
// Errors: RunError, or InputError if the run's was one, with the run's own message, if a run fails for another reason
// than divergence.
bool perform_runs(const std::vector<StudyRun>& runs, const RunProcessesOptions& options,
                  const std::function<void(const StudyRun&, RunStatus)>& ended);

// Where the diagnostics of a run are stored.
std::filesystem::path diagnostics_file(const StudyRun& run, const std::filesystem::path& root);
// The JSON that `gyre diagnose` prints for a finished run. It is stored beside the run, so it is measured only once.
// Returns nothing if it was stopped.
std::optional<std::string> diagnostics_of(const StudyRun& run, const RunProcessesOptions& options);
// The same, if it is stored already.
std::optional<std::string> stored_diagnostics_of(const StudyRun& run, const std::filesystem::path& root);

}  // namespace gyre
