#include "gyre/report/html/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/text.h"
#include "gyre/report/html/assets.h"
#include "gyre/report/html/run_part.h"
#include "gyre/report/html/study_part.h"
#include "gyre/report/html/timeline_part.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string_view asset(std::string_view name) {
  const std::string_view text = find_asset(name);
  if (text.empty()) throw std::logic_error(fmt::format("the page's {} was not built in", name));
  return text;
}

// JSON within a script: no tag ends or begins in it.
std::string for_script(const Json& json) {
  std::string text;
  for (const char c : json.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

std::string assemble(const Json& data) {
  const std::string_view page = asset("page.html");
  std::string html;
  for (size_t at = 0; at < page.size();) {
    const size_t mark = page.find("{{", at);
    html += page.substr(at, mark - at);
    if (mark == std::string_view::npos) break;
    const size_t end = page.find("}}", mark);
    const std::string_view name = page.substr(mark + 2, end - mark - 2);
    if (name == "data") {
      html += for_script(data);
    } else {
      html += asset(name);
    }
    at = end + 2;
  }
  return html;
}

std::vector<std::string> parts_of(const fs::path& path) {
  std::vector<std::string> parts;
  for (const fs::path& part : fs::absolute(path).lexically_normal().relative_path()) {
    if (!part.empty()) parts.push_back(part.string());  // none behind a slash at the end
  }
  return parts;
}

// Names that tell paths apart: the last parts, as many as that takes.
std::vector<std::string> short_names(const std::vector<fs::path>& paths) {
  std::vector<std::vector<std::string>> all;
  for (const fs::path& path : paths) all.push_back(parts_of(path));
  const auto tail = [](const std::vector<std::string>& parts, size_t count) {
    return join({parts.end() - static_cast<std::ptrdiff_t>(std::min(count, parts.size())), parts.end()}, "/");
  };
  std::vector<std::string> names;
  std::map<std::string, int> seen;
  for (const auto& parts : all) {
    size_t count = 1;
    const auto is_shared = [&](const auto& other) {
      return other != parts && tail(other, count) == tail(parts, count);
    };
    while (count < parts.size() && std::any_of(all.begin(), all.end(), is_shared)) ++count;
    names.push_back(printable(tail(parts, count)));
    // One that was given twice.
    if (const int times = ++seen[names.back()]; times > 1) names.back() += fmt::format(" ({})", times);
  }
  return names;
}

enum class Kind { Run, Study, Trace };

Kind kind_of(const fs::path& path) {
  if (!is_there(path)) throw InputError(fmt::format("{}: is not there; give a run, a study or a trace", path.string()));
  if (fs::is_directory(path)) {
    if (is_there(path / "config.toml")) return Kind::Run;
    if (is_there(path / "results.json")) return Kind::Study;
    throw InputError(
        fmt::format("{}: is neither a run (it has no config.toml) nor a study with results (it has no "
                    "results.json); give one of these, or a trace",
                    path.string()));
  }
  return Kind::Trace;
}

std::string plural(size_t count, const char* one, const char* more) {
  return fmt::format("{} {}", count, count == 1 ? one : more);
}

// Runs that have as good as nothing in common.
void note_strangers(const Json& runs, std::vector<std::string>& notes) {
  for (size_t i = 1; i < runs.size(); ++i) {
    const Json &first = runs[0]["config"], &other = runs[i]["config"];
    if (first["model"] == other["model"] || first["data"] == other["data"]) continue;
    notes.push_back(
        fmt::format("{} and {} have neither their model nor their data in common: their losses do not compare",
                    runs[0]["name"].get<std::string>(), runs[i]["name"].get<std::string>()));
  }
}

}  // namespace

Report make_report(const ReportOptions& options) {
  Report report;
  std::vector<fs::path> runs, traces;
  Json data = {{"version", options.version},
               {"notes", Json::array()},
               {"runs", Json::array()},
               {"studies", Json::array()},
               {"timelines", Json::array()}};
  for (const fs::path& path : options.what) {
    switch (kind_of(path)) {
      case Kind::Run:
        runs.push_back(path);
        break;
      case Kind::Study: {
        StudyPart study = study_part(path);
        data["studies"].push_back(std::move(study.page));
        runs.insert(runs.end(), study.runs.begin(), study.runs.end());
        break;
      }
      case Kind::Trace:
        traces.push_back(path);
        break;
    }
  }
  const std::vector<std::string> names = short_names(runs);
  for (size_t i = 0; i < runs.size(); ++i) {
    RunPart run = run_part(runs[i], names[i], report.notes);
    if (is_there(runs[i] / "trace.json")) {
      data["timelines"].push_back(trace_part(runs[i] / "trace.json", names[i], report.notes));
    } else if (run.simulated && traces.empty() && data["studies"].empty()) {
      data["timelines"].push_back(timeline_part(std::move(*run.simulated), names[i], true, report.notes));
    }
    data["runs"].push_back(std::move(run.page));
  }
  const std::vector<std::string> trace_names = short_names(traces);
  for (size_t i = 0; i < traces.size(); ++i) {
    data["timelines"].push_back(trace_part(traces[i], trace_names[i], report.notes));
  }
  note_strangers(data["runs"], report.notes);
  data["notes"] = report.notes;
  report.html = assemble(data);
  std::vector<std::string> parts;
  const auto count = [&](const char* key, const char* one, const char* more) {
    if (!data[key].empty()) parts.push_back(plural(data[key].size(), one, more));
  };
  count("studies", "study", "studies");
  count("runs", "run", "runs");
  count("timelines", "timeline", "timelines");
  report.summary = join(parts, ", ");
  return report;
}

}  // namespace gyre
