#include "gyre/report/study_directory.h"

#include "gyre/core/files.h"

namespace gyre {

namespace fs = std::filesystem;

namespace {

// Those of a study that have begun, its short trials too.
std::vector<fs::path> begun_runs(const fs::path& directory) {
  std::vector<fs::path> runs;
  std::error_code error;
  for (const fs::path& arm : entries_of(directory / "runs", error)) {
    for (const fs::path& run : entries_of(arm, error)) {
      // Logs are files.
      if (fs::is_directory(run, error) && is_there(run / "config.toml")) runs.push_back(run);
    }
  }
  return runs;
}

}  // namespace

bool is_study(const fs::path& directory) {
  return is_there(directory / "results.json") || !begun_runs(directory).empty();
}

std::vector<fs::path> study_runs(const fs::path& directory) {
  std::vector<fs::path> runs = begun_runs(directory);
  std::erase_if(runs, [](const fs::path& run) { return run.filename().string().starts_with("trial"); });
  return runs;
}

}  // namespace gyre
