// A run's latest numbers as a text file for Prometheus, by way of node-exporter's textfile collector. Made of the lines
// of metrics.jsonl alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "gyre/core/files.h"
#include "gyre/report/metrics.h"
#include "gyre/report/scalars.h"

namespace gyre {

class PrometheusFile final : public MetricsListener {
 public:
  // `run`: the label of all metrics. `metrics`: what earlier sessions wrote. The file is written at once, again with
  // every line, and replaced each time as a whole: who reads it sees no half of it. RunError.
  PrometheusFile(std::filesystem::path path, const std::string& run, int64_t updates, std::string_view metrics,
                 FileSystem& files = system_files());
  void hear(const MetricsLine& line) override;

 private:
  void take(const MetricsLine& line);
  std::string text() const;
  void write() const;

  std::filesystem::path path_;
  std::string run_;  // as a label's value
  int64_t updates_;
  FileSystem& files_;
  int64_t step_ = 0, saved_ = 0;
  bool running_ = true;
  std::map<std::pair<const ScalarKind*, int>, double> latest_;  // by kind and index
};

}  // namespace gyre
