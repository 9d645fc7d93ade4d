// The report of runs that go on: made anew when their files have changed, and not more often than that costs little.
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

// What the page asks for (report/html/page.h), as JSON with tags.
struct LiveTexts {
  std::string data, data_tag;
  std::string timelines, timelines_tag;
};

class LiveReport {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;
  // Reads for the first time: InputError as `gyre report` has it.
  explicit LiveReport(std::vector<std::filesystem::path> what, Clock clock = std::chrono::steady_clock::now);

  // What the files say, as of a second ago at most, or of twenty times as long as reading took. Where they cannot be
  // read any more, what they said last, and why. Any thread; those that ask meanwhile wait.
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
