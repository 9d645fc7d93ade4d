// The HTML report: runs, studies and traces in one file that loads nothing from the network. Also the live page, which
// looks the same and repeatedly asks its server for the data.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace gyre {

struct ReportOptions {
  std::vector<std::filesystem::path> what;  // directories of runs and studies, and trace files
  std::string version;                      // of gyre
};
struct Report {
  std::string html;
  std::string summary;             // what is in it, in one line
  std::vector<std::string> notes;  // what it lacks and why, a line each; the page shows them too
};

// Throws InputError for a path that is not a run, study or trace, or cannot be read.
Report make_report(const ReportOptions& options);

// The live page. It requests `data` and `timelines`, relative to its own address: the two parts of ReportData::Page as
// JSON. `data` also has the tag of `timelines` as "timelines_tag" and, if the files could not be read just now, the
// reason as "problem".
std::string live_page(const std::string& version);

}  // namespace gyre
