// The HTML report: runs, studies and traces in one file that asks the network for nothing; and the page of the same
// look that asks who serves it for its data, again and again.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace gyre {

struct ReportOptions {
  std::vector<std::filesystem::path> what;  // runs' and studies' directories, and traces
  std::string version;                      // of gyre
};
struct Report {
  std::string html;
  std::string summary;             // what is in it, in a line
  std::vector<std::string> notes;  // what it lacks and why, a line each; the page says them too
};

// InputError for what is no run, study or trace, or cannot be read.
Report make_report(const ReportOptions& options);

// It asks for `data` and `timelines` beside its own address: ReportData::Page's two parts as JSON, the former with the
// tag of the latter as "timelines_tag", and, where the files could not be read just now, why, as "problem".
std::string live_page(const std::string& version);

}  // namespace gyre
