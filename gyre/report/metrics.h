// metrics.jsonl: one JSON object a line, for people's scripts. Numbers are written so that reading them back gives the
// same bits; what is not finite is null. Each line is written at once, so a crash tears at most the last.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "gyre/core/files.h"

namespace gyre {

struct MetricsStep {
  int64_t step = 0;  // updates made
  double loss = 0;
  double lr = 0;
  double grad_norm = 0;
  int64_t tokens = 0;  // since the run began
  double tokens_per_second = 0;
  double seconds = 0;  // since this session began
};

struct MetricsEnd {
  std::string status;  // finished | interrupted | diverged | failed
  int64_t step = 0;
  double loss = 0;
  std::optional<double> val_loss;
  int64_t tokens = 0;
  double tokens_per_second = 0;
  std::optional<double> bubble_fraction;
  double seconds = 0;
  int64_t skipped_updates = 0;  // of stages, for gradients that were not finite; this session
};

class MetricsWriter {
 public:
  // Appends. RunError when the file cannot be written.
  explicit MetricsWriter(const std::filesystem::path& path, FileSystem& files = system_files());

  void step(const MetricsStep& line);
  void eval(int64_t step, double val_loss);
  // delay -> microbatches whose gradient was so many updates old.
  void delay(int stage, const std::map<int64_t, int64_t>& histogram);
  void drain(int64_t step, const std::string& reason);
  void end(const MetricsEnd& line);

 private:
  void write(const std::string& line);
  OutputFile file_;
};

// For a resumed run: drops what lies past `step`, the ends of earlier sessions and a torn last line. A file that is not
// there is left so. InputError for a line that cannot be read.
void truncate_metrics_after(const std::filesystem::path& path, int64_t step, FileSystem& files = system_files());
// What such a run keeps of the text.
std::string metrics_until(std::string_view text, const std::string& origin, int64_t step);

}  // namespace gyre
