// The data of the report's page, read from files. For a live page, only files that have changed are read again.
#pragma once

#include <cstdint>
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
#include "gyre/report/run_curves.h"

namespace gyre {

class ReportData {
 public:
  // what: directories of runs and studies, and trace files.
  explicit ReportData(std::vector<std::filesystem::path> what) : what_(std::move(what)) {}

  // NOLINTNEXTLINE(bugprone-exception-escape): moving JSON is said to throw, and does not
  struct Page {
    nlohmann::ordered_json json;       // everything except the timelines
    nlohmann::ordered_json timelines;  // an array
    std::string summary;               // what is in it, in one line
    std::vector<std::string> notes;    // what it lacks and why, a line each; `json` has them too
  };
  // Returns the same object as the last time if no file has changed. Throws InputError for a path that is not a run,
  // study or trace, or cannot be read.
  std::shared_ptr<const Page> read();

 private:
  // A part made from files, with the files' stamps at that time (empty: the file did not exist).
  template <typename Part>
  struct Made {
    std::vector<std::optional<InputFile::Stamp>> stamps;
    std::shared_ptr<const Part> part;
    int64_t asked = 0;  // the last round that asked for it
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
  struct Simulated {
    std::shared_ptr<const Run> run;
    std::shared_ptr<const Timeline> timeline;
    int64_t asked = 0;
  };
  struct Parts {
    std::vector<std::shared_ptr<const nlohmann::ordered_json>> studies;
    std::vector<std::shared_ptr<const Run>> runs;
    std::vector<std::shared_ptr<const Timeline>> timelines;
    bool operator==(const Parts&) const = default;  // the same objects
  };
  // The part in `made` under `key`; calls `build` if one of the files has changed.
  template <typename Part>
  std::shared_ptr<const Part> make(std::map<std::string, Made<Part>>& made, const std::string& key,
                                   const std::vector<std::filesystem::path>& files, const std::function<Part()>& build);
  std::shared_ptr<const nlohmann::ordered_json> study(const std::filesystem::path& path);
  RunCurves curves(const std::filesystem::path& path);
  std::shared_ptr<const Run> run(const std::filesystem::path& path, const std::string& name);
  std::shared_ptr<const Timeline> trace(const std::filesystem::path& path, const std::string& name);
  // The simulated timeline of a run's schedule.
  std::shared_ptr<const Timeline> simulated(const std::shared_ptr<const Run>& run, const std::string& name);

  // What the page consists of, made again where files have changed. Forgets what is no longer part of it.
  Parts collect();
  static Page assemble(const Parts& parts);

  std::vector<std::filesystem::path> what_;
  int64_t round_ = 0;  // how often collect() was called
  std::map<std::string, Made<nlohmann::ordered_json>> studies_;
  size_t max_points_ = 0;  // of the curves of `runs_`
  std::map<std::string, Made<Run>> runs_;
  std::map<std::filesystem::path, RunCurvesReader> curves_;  // of the runs that have not recorded their end
  std::map<std::string, Made<Timeline>> traces_;
  std::map<std::string, Simulated> simulated_;
  Parts parts_;  // of `page_`
  std::shared_ptr<const Page> page_;
};

}  // namespace gyre
