// A run's latest numbers as a text file for Prometheus, read by node-exporter's textfile collector. Made from the lines
// of metrics.jsonl alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "gyre/core/files.h"
#include "gyre/report/metrics.h"
#include "gyre/report/scalars.h"

namespace gyre {

class PrometheusFile final : public MetricsListener {
 public:
  // run: the label of all metrics. metrics: the file with the lines of earlier sessions, if there is one. Writes
  // nothing yet. Throws RunError.
  PrometheusFile(std::filesystem::path path, const std::string& run, int64_t updates,
                 const std::filesystem::path& metrics, FileSystem& files = system_files());
  // Writes the file, which hear() does with every line. It is replaced atomically, so that nobody reads a partial file.
  // Throws RunError.
  void write() const;
  void hear(const MetricsLine& line) override;

 private:
  void take(const MetricsLine& line);
  std::string text() const;

  std::filesystem::path path_;
  std::string run_;  // escaped, as a label's value
  int64_t updates_;
  FileSystem& files_;
  int64_t step_ = 0, saved_ = 0;
  bool running_ = true;
  std::map<std::pair<const ScalarKind*, int>, double> latest_;  // by kind and index
};

}  // namespace gyre
