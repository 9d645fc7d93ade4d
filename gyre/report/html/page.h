// The HTML report: runs, studies and traces in one file that asks the network for nothing.
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

}  // namespace gyre
