#include "gyre/report/html/study_part.h"

#include <fmt/format.h>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/json_fields.h"

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

nlohmann::ordered_json study_page(const fs::path& directory) {
  const fs::path path = directory / "results.json";
  if (!is_there(path))
    return {{"study", fs::absolute(directory / "").lexically_normal().parent_path().filename().string()}};
  const auto results = parse_json<nlohmann::ordered_json>(read_file(path));
  const bool has_arms = results && results->is_object() && results->contains("arms") && results->at("arms").is_array();
  if (!has_arms) throw InputError(fmt::format("{}: is not what gyre study wrote; run the study again", path.string()));
  return *results;
}

}  // namespace gyre
