// Reads a metrics.jsonl that grows while a run goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "gyre/core/files.h"
#include "gyre/report/metrics_reader.h"

namespace gyre {

class MetricsFollower {
 public:
  // advice: what errors say to do, as in for_each_metrics_line(). after: first lines that are not visited.
  MetricsFollower(std::filesystem::path path, std::string advice, const FirstLines& after = {})
      : path_(std::move(path)), advice_(std::move(advice)), read_(after.bytes), lines_(after.lines) {}

  // Visits the lines that are new since the last call. Before it visits the first line of the file, also if it begins
  // again because the file was replaced, shortened or removed, it calls `begin`. Throws InputError for a line that
  // cannot be read, and begins again the next time.
  void read(const std::function<void()>& begin, const std::function<void(const MetricsLine&)>& visit);

 private:
  bool continues(const InputFile& file) const;
  void take_new(const InputFile& file, const std::function<void(const MetricsLine&)>& visit);
  void take(std::string_view lines, const std::function<void(const MetricsLine&)>& visit);
  void forget();

  std::filesystem::path path_;
  std::string advice_;
  uint64_t read_ = 0;  // bytes of the file that were visited
  int64_t lines_ = 0;  // in these bytes
  std::string last_;   // the last of these bytes, to notice when the file is replaced
};

}  // namespace gyre
