// The run's metrics for TensorBoard and Prometheus, where [run] asks for them. What cannot be written there is said
// once and given up: a run does not end for it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gyre/config/config.h"
#include "gyre/report/metrics.h"
#include "gyre/report/progress.h"
#include "gyre/train/run_directory.h"

namespace gyre {

class MetricsExports final : public MetricsListener {
 public:
  // last_written: when the metrics that are there were written to last, in seconds since 1970.
  MetricsExports(const RunDirectory& run, const Config& config, double last_written, Progress& progress,
                 FileSystem& files);
  void hear(const MetricsLine& line) override;

 private:
  Progress& progress_;
  std::vector<std::unique_ptr<MetricsListener>> exports_;
};

// Of the metrics that a session goes on with, before it changes them; now where there are none.
double last_written(const std::filesystem::path& metrics);

// Asked before the work: InputError where [run] prometheus cannot be written.
void check_exports(const Config& config);

}  // namespace gyre
