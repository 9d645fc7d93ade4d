#include "gyre/report/html/report_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/report/html/study_part.h"
#include "gyre/report/html/timeline_part.h"
#include "gyre/report/study_directory.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kMaxOfStudy = 8;                      // simulated timelines in a report with a study
constexpr size_t kMaxPoints = 2000, kFewPoints = 250;  // of a curve
constexpr size_t kMaxPointsOfAll = 100'000;            // of the same curve of all runs

// The most points that a curve has in a report of so many runs. It is halved, so that one more run seldom changes it.
size_t points_of_curve(size_t runs) {
  size_t points = kMaxPoints;
  while (points > kFewPoints && points * runs > kMaxPointsOfAll) points /= 2;
  return points;
}

std::vector<std::string> parts_of(const fs::path& path) {
  std::vector<std::string> parts;
  for (const fs::path& part : fs::absolute(path).lexically_normal().relative_path()) {
    if (!part.empty()) parts.push_back(part.string());  // a slash at the end makes an empty part
  }
  return parts;
}

// Names that distinguish the paths: as many of the last parts as needed.
std::vector<std::string> short_names(const std::vector<fs::path>& paths) {
  std::vector<std::vector<std::string>> all;
  for (const fs::path& path : paths) all.push_back(parts_of(path));
  const auto tail = [](const std::vector<std::string>& parts, size_t count) {
    return join({parts.end() - static_cast<std::ptrdiff_t>(std::min(count, parts.size())), parts.end()}, "/");
  };
  // [count]: how many paths end so with `count` parts. To compare every two of 2,000 paths took half a second.
  std::vector<std::map<std::string, int>> ends;
  const std::set<std::vector<std::string>> different(all.begin(), all.end());
  const auto is_shared = [&](const std::vector<std::string>& parts, size_t count) {
    while (ends.size() <= count) {
      auto& paths = ends.emplace_back();
      for (const auto& other : different) ++paths[tail(other, ends.size() - 1)];
    }
    return ends[count].at(tail(parts, count)) > 1;
  };
  std::vector<std::string> names;
  std::map<std::string, int> seen;
  for (const auto& parts : all) {
    size_t count = 1;
    while (count < parts.size() && is_shared(parts, count)) ++count;
    names.push_back(printable(tail(parts, count)));
    // A path that was given twice.
    if (const int times = ++seen[names.back()]; times > 1) names.back() += fmt::format(" ({})", times);
  }
  return names;
}

enum class Kind { Run, Study, Trace };

Kind kind_of(const fs::path& path) {
  if (!is_there(path)) throw InputError(fmt::format("{}: is not there; give a run, a study or a trace", path.string()));
  if (fs::is_directory(path)) {
    if (is_there(path / "config.toml")) return Kind::Run;
    if (is_study(path)) return Kind::Study;
    throw InputError(
        fmt::format("{}: is neither a run (it has no config.toml) nor a study (it has neither results.json nor runs "
                    "that began); give one of these, or a trace",
                    path.string()));
  }
  return Kind::Trace;
}

// Notes runs whose model and data both differ from those of the first run.
void note_unrelated_runs(const Json& runs, std::vector<std::string>& notes) {
  for (size_t i = 1; i < runs.size(); ++i) {
    const Json &first = runs[0]["config"], &other = runs[i]["config"];
    if (first["model"] == other["model"] || first["data"] == other["data"]) continue;
    notes.push_back(
        fmt::format("{} and {} have neither their model nor their data in common: their losses do not compare",
                    runs[0]["name"].get<std::string>(), runs[i]["name"].get<std::string>()));
  }
}

}  // namespace

template <typename Part>
std::shared_ptr<const Part> ReportData::make(std::map<std::string, Made<Part>>& made, const std::string& key,
                                             const std::vector<fs::path>& files, const std::function<Part()>& build) {
  // Taken before the files are read, so that a change in between is noticed the next time.
  std::vector<std::optional<InputFile::Stamp>> stamps;
  for (const fs::path& file : files) {
    stamps.push_back(is_there(file) ? std::optional(InputFile(file).stamp()) : std::nullopt);
  }
  auto& cached = made[key];
  cached.asked = round_;
  if (!cached.part || cached.stamps != stamps) {
    cached.part = std::make_shared<const Part>(build());
    cached.stamps = std::move(stamps);
  }
  return cached.part;
}

std::shared_ptr<const Json> ReportData::study(const fs::path& path) {
  return make<Json>(studies_, path.string(), {path / "results.json"}, [&] { return study_page(path); });
}

// What a run has recorded so far is kept until its end, so that only what is new must be read.
RunCurves ReportData::curves(const fs::path& path) {
  const auto reader = curves_.try_emplace(path, path / "metrics.jsonl").first;
  RunCurves curves = reader->second.read(max_points_);
  if (curves.end) curves_.erase(reader);
  return curves;
}

std::shared_ptr<const ReportData::Run> ReportData::run(const fs::path& path, const std::string& name) {
  return make<Run>(runs_, fmt::format("{}\n{}", path.string(), name),
                   {path / "config.toml", path / "metrics.jsonl", path / "costs.json"}, [&] {
                     Run run;
                     run.part = run_part(path, name, curves(path), run.notes);
                     return run;
                   });
}

std::shared_ptr<const ReportData::Timeline> ReportData::trace(const fs::path& path, const std::string& name) {
  return make<Timeline>(traces_, fmt::format("{}\n{}", path.string(), name), {path}, [&] {
    Timeline timeline;
    timeline.page = trace_part(path, name, timeline.notes);
    return timeline;
  });
}

std::shared_ptr<const ReportData::Timeline> ReportData::simulated(const std::shared_ptr<const Run>& run,
                                                                  const std::string& name) {
  auto& cached = simulated_[name];
  cached.asked = round_;
  if (cached.run != run) {
    Timeline made;
    made.page = timeline_part(*run->part.simulated, name, true, made.notes);
    cached.run = run;
    cached.timeline = std::make_shared<const Timeline>(std::move(made));
  }
  return cached.timeline;
}

ReportData::Parts ReportData::collect() {
  ++round_;
  Parts parts;
  std::vector<fs::path> run_paths, trace_paths;
  for (const fs::path& path : what_) {
    switch (kind_of(path)) {
      case Kind::Run:
        run_paths.push_back(path);
        break;
      case Kind::Study: {
        parts.studies.push_back(study(path));
        const std::vector<fs::path> more = study_runs(path);
        run_paths.insert(run_paths.end(), more.begin(), more.end());
        break;
      }
      case Kind::Trace:
        trace_paths.push_back(path);
        break;
    }
  }
  std::set<std::string> drawn;
  const std::vector<std::string> names = short_names(run_paths);
  const size_t max_points = points_of_curve(run_paths.size());
  if (std::exchange(max_points_, max_points) != max_points) runs_.clear();
  for (size_t i = 0; i < run_paths.size(); ++i) {
    parts.runs.push_back(run(run_paths[i], names[i]));
    if (is_there(run_paths[i] / "trace.json")) {
      parts.timelines.push_back(trace(run_paths[i] / "trace.json", names[i]));
    } else if (parts.runs[i]->part.simulated && trace_paths.empty()) {
      // With a study, one timeline is enough for all runs with the same model and pipeline.
      const Json& config = parts.runs[i]->part.page["config"];
      const bool is_new = drawn.insert(config["pipeline"].dump() + config["model"].dump()).second;
      if (!parts.studies.empty() && (!is_new || drawn.size() > kMaxOfStudy)) continue;
      parts.timelines.push_back(simulated(parts.runs[i], names[i]));
    }
  }
  const std::vector<std::string> trace_names = short_names(trace_paths);
  for (size_t i = 0; i < trace_paths.size(); ++i) parts.timelines.push_back(trace(trace_paths[i], trace_names[i]));
  // A study's runs may go, and names become longer when others come.
  const auto forget = [&](auto& made) {
    std::erase_if(made, [&](const auto& entry) { return entry.second.asked != round_; });
  };
  forget(studies_);
  forget(runs_);
  forget(traces_);
  forget(simulated_);
  const std::set<fs::path> there(run_paths.begin(), run_paths.end());
  std::erase_if(curves_, [&](const auto& entry) { return !there.contains(entry.first); });
  return parts;
}

ReportData::Page ReportData::assemble(const Parts& parts) {
  Page page;
  page.json = {{"notes", Json::array()}, {"runs", Json::array()}, {"studies", Json::array()}};
  page.timelines = Json::array();
  for (const auto& part : parts.studies) {
    page.json["studies"].push_back(*part);
    if (part->contains("arms")) continue;
    page.notes.push_back(
        fmt::format("{}: the study has no results yet: here are its runs that have begun, without short trials",
                    part->at("study").get<std::string>()));
  }
  for (const auto& part : parts.runs) {
    page.json["runs"].push_back(part->part.page);
    page.notes.insert(page.notes.end(), part->notes.begin(), part->notes.end());
  }
  for (const auto& part : parts.timelines) {
    page.timelines.push_back(part->page);
    page.notes.insert(page.notes.end(), part->notes.begin(), part->notes.end());
  }
  note_unrelated_runs(page.json["runs"], page.notes);
  page.json["notes"] = page.notes;
  std::vector<std::string> counts;
  const auto count = [&](const Json& parts_of_kind, const char* noun) {
    if (!parts_of_kind.empty()) counts.push_back(counted(std::ssize(parts_of_kind), noun));
  };
  count(page.json["studies"], "study");
  count(page.json["runs"], "run");
  count(page.timelines, "timeline");
  page.summary = join(counts, ", ");
  return page;
}

std::shared_ptr<const ReportData::Page> ReportData::read() {
  Parts parts = collect();
  if (!page_ || parts != parts_) {
    page_ = std::make_shared<const Page>(assemble(parts));
    parts_ = std::move(parts);
  }
  return page_;
}

}  // namespace gyre
