#include "gyre/train/metrics_exports.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/text.h"
#include "gyre/core/timing.h"
#include "gyre/report/tensorboard.h"

namespace gyre {
namespace {

// Calls `write`. If it throws an Error, reports it and returns false.
bool try_to_write(Progress& progress, const std::function<void()>& write) {
  try {
    write();
    return true;
  } catch (const Error& error) {
    progress.message(fmt::format("{}; the run goes on without that file", error.what()));
    return false;
  }
}

}  // namespace

MetricsExports::MetricsExports(const RunDirectory& run, const Config& config, double last_written, Progress& progress,
                               FileSystem& files)
    : progress_(progress) {
  if (config.run.tensorboard) {
    try_to_write(progress_, [&] {
      tensorboard_ = std::make_unique<TensorBoardWriter>(run.tensorboard(), run.metrics(), last_written, files);
    });
  }
  if (!config.run.prometheus.empty()) {
    try_to_write(progress_, [&] {
      const std::string name = std::filesystem::absolute(run.root()).lexically_normal().string();
      prometheus_ =
          std::make_unique<PrometheusFile>(config.run.prometheus, name, config.run.updates, run.metrics(), files);
    });
  }
  if (prometheus_) write_prometheus([&] { prometheus_->write(); });
}

void MetricsExports::hear(const MetricsLine& line) {
  if (tensorboard_ && !try_to_write(progress_, [&] { tensorboard_->hear(line); })) tensorboard_.reset();
  if (prometheus_) write_prometheus([&] { prometheus_->hear(line); });
}

void MetricsExports::write_prometheus(const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& error) {
    if (std::exchange(said_prometheus_, true)) return;
    progress_.message(
        fmt::format("{}; the run goes on without that file, and tries again at every update", error.what()));
  }
}

double last_written(const std::filesystem::path& metrics) {
  struct stat status {};
  if (::stat(metrics.c_str(), &status) == 0) {
    return static_cast<double>(status.st_mtim.tv_sec) + 1e-9 * static_cast<double>(status.st_mtim.tv_nsec);
  }
  return unix_seconds();
}

void check_exports(const Config& config, bool has_begun) {
  if (config.run.prometheus.empty()) return;
  if (!config.run.prometheus.ends_with(".prom")) {
    throw InputError(fmt::format("[run] prometheus is {}: node-exporter reads only files whose names end in .prom",
                                 printable(config.run.prometheus)));
  }
  if (has_begun) return;
  const std::string why = why_not_writable(config.run.prometheus);
  if (why.empty()) return;
  throw InputError(
      fmt::format("[run] prometheus is {}, which cannot be written: {}", printable(config.run.prometheus), why));
}

}  // namespace gyre
