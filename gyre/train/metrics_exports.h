// Exports the run's metrics to TensorBoard and Prometheus if [run] asks for it. A file that cannot be written is
// reported once, and the run goes on. Prometheus' file, which is replaced as a whole, is tried again at the next line;
// TensorBoard's, which grow, are given up.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "gyre/config/config.h"
#include "gyre/report/metrics.h"
#include "gyre/report/progress.h"
#include "gyre/report/prometheus.h"
#include "gyre/train/run_directory.h"

namespace gyre {

class MetricsExports final : public MetricsListener {
 public:
  // last_written: when the existing metrics were last written to, in seconds since 1970.
  MetricsExports(const RunDirectory& run, const Config& config, double last_written, Progress& progress,
                 FileSystem& files);
  void hear(const MetricsLine& line) override;

 private:
  // If `write` throws an Error, reports the first.
  void write_prometheus(const std::function<void()>& write);

  Progress& progress_;
  std::unique_ptr<MetricsListener> tensorboard_;
  std::unique_ptr<PrometheusFile> prometheus_;
  bool said_prometheus_ = false;  // that it cannot be written
};

// When `metrics` was last written to, in seconds since 1970; now if the file does not exist. To be called before a
// session changes it.
double last_written(const std::filesystem::path& metrics);

// Throws InputError if [run] prometheus names no file for Prometheus or, for a run that has not begun, one that cannot
// be written. A run that has begun is not lost for that: its name was right once. To be called before the work.
void check_exports(const Config& config, bool has_begun);

}  // namespace gyre
