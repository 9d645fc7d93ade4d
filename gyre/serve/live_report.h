// The report of runs in progress: updated when their files have changed, but only so often that reading costs little.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gyre/report/html/report_data.h"

namespace gyre {

// The JSON texts that the page loads (report/html/page.h), and their tags.
struct LiveTexts {
  std::string data, data_tag;
  std::string timelines, timelines_tag;
};

class LiveReport {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;
  // Reads the files for the first time; throws InputError as `gyre report` does.
  explicit LiveReport(std::vector<std::filesystem::path> what, Clock clock = std::chrono::steady_clock::now);

  // The content of the files, at most a second old, or twenty times as long as reading took. If they cannot be read any
  // more: the last content, and the reason. From any thread; concurrent callers wait.
  std::shared_ptr<const LiveTexts> now();
  const std::string& summary() const { return summary_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void read();

  Clock clock_;
  ReportData data_;
  std::string summary_;
  std::vector<std::string> notes_;
  std::mutex mutex_;
  std::shared_ptr<const ReportData::Page> page_;
  std::string problem_;
  std::shared_ptr<const LiveTexts> texts_;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace gyre
