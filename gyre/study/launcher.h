// Runs of a study as processes, several side by side. A run that was finished before is not run again, one that was
// begun is resumed, so a study that was stopped goes on where it was.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "gyre/study/study.h"

namespace gyre {

struct LauncherOptions {
  std::filesystem::path program;  // gyre-engine
  std::filesystem::path root;     // where runs are kept
  int jobs = 1;                   // side by side
  std::stop_token stop;           // Ctrl-C: runs drain and save
  std::stop_token abandon;        // once more: they end at once
};

// How a run has ended, or stands.
enum class RunStatus { Absent, Begun, Finished, Diverged };
// InputError when a run is in `directory` that was made with other settings.
RunStatus status_of(const std::filesystem::path& directory, const Config& config);

// Calls `ended` as each run is at its end, in order of their ending. Returns false if it was stopped.
// Errors: RunError with the run's own message when one fails for another reason than divergence.
bool launch(const std::vector<StudyRun>& runs, const LauncherOptions& options,
            const std::function<void(const StudyRun&, RunStatus)>& ended);

// What `gyre diagnose` says of a run that has finished, as JSON; kept beside the run, and measured once. Nothing if it
// was stopped.
std::optional<std::string> diagnostics_of(const StudyRun& run, const LauncherOptions& options);

}  // namespace gyre
