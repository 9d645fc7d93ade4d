// What the report's page shows, read from files; and read again where they have changed, for a page that follows its
// runs.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gyre/core/files.h"
#include "gyre/report/html/run_part.h"

namespace gyre {

class ReportData {
 public:
  // Runs' and studies' directories, and traces.
  explicit ReportData(std::vector<std::filesystem::path> what) : what_(std::move(what)) {}

  // NOLINTNEXTLINE(bugprone-exception-escape): moving JSON is said to throw, and does not
  struct Page {
    nlohmann::ordered_json json;       // all but the timelines
    nlohmann::ordered_json timelines;  // an array
    std::string summary;               // what is in it, in a line
    std::vector<std::string> notes;    // what it lacks and why, a line each; json has them too
  };
  // The same object as the last time where no file has changed. InputError for what is no run, study or trace, or
  // cannot be read.
  std::shared_ptr<const Page> read();

 private:
  // What was made of files, and of which.
  template <typename Part>
  struct Made {
    std::vector<std::optional<InputFile::Stamp>> stamps;
    std::shared_ptr<const Part> part;
  };
  // NOLINTNEXTLINE(bugprone-exception-escape): moving JSON is said to throw, and does not
  struct Run {
    RunPart part;
    std::vector<std::string> notes;
  };
  // NOLINTNEXTLINE(bugprone-exception-escape): moving JSON is said to throw, and does not
  struct Timeline {
    nlohmann::ordered_json page;
    std::vector<std::string> notes;
  };
  template <typename Part>
  std::shared_ptr<const Part> make(std::map<std::string, Made<Part>>& made, const std::string& key,
                                   const std::vector<std::filesystem::path>& files, const std::function<Part()>& anew);
  std::shared_ptr<const nlohmann::ordered_json> study(const std::filesystem::path& path);
  std::shared_ptr<const Run> run(const std::filesystem::path& path, const std::string& name);
  std::shared_ptr<const Timeline> trace(const std::filesystem::path& path, const std::string& name);
  // Of a run's schedule, from what was made of the run.
  std::shared_ptr<const Timeline> simulated(const std::shared_ptr<const Run>& run, const std::string& name);

  std::vector<std::filesystem::path> what_;
  std::map<std::string, Made<nlohmann::ordered_json>> studies_;
  std::map<std::string, Made<Run>> runs_;
  std::map<std::string, Made<Timeline>> traces_;
  std::map<std::string, std::pair<std::shared_ptr<const Run>, std::shared_ptr<const Timeline>>> simulated_;
  std::vector<std::shared_ptr<const void>> parts_;  // of the page, in its order
  std::shared_ptr<const Page> page_;
};

}  // namespace gyre
