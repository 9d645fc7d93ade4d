// metrics.jsonl: one JSON object a line, for people's scripts. Numbers are written so that reading them back gives the
// same bits; what is not finite is null. Each line is written at once, so a crash tears at most the last.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  std::optional<double> val_loss, ema_val_loss;
  int64_t tokens = 0;
  double tokens_per_second = 0;
  std::optional<double> bubble_fraction;
  double seconds = 0;
  int64_t skipped_updates = 0;                           // of stages, for gradients that were not finite
  double save_wait_seconds = 0, save_write_seconds = 0;  // of all checkpoints of the session
};

// What came of the updates since the last drain.
struct MetricsSegment {
  int64_t step = 0;
  double seconds = 0;
  std::vector<double> bubbles;  // [worker]: share of the time without work; empty where they do not work side by side
  std::vector<double> delays;   // [stage]: mean delay of a gradient, in updates
  // [process]: the most bytes that it held at once since it began: its tensors on the host (large ones; empty where
  // nobody counts them), and all that it has of the system.
  std::vector<int64_t> peak_tensor_bytes, peak_resident_bytes;
};

class MetricsLine;  // metrics_reader.h

// Who hears each line once it is written: other programs' files are made of the lines alone.
class MetricsListener {
 public:
  virtual ~MetricsListener() = default;
  virtual void hear(const MetricsLine& line) = 0;
};

class MetricsWriter {
 public:
  // Appends. RunError when the file cannot be written.
  explicit MetricsWriter(const std::filesystem::path& path, FileSystem& files = system_files());

  void step(const MetricsStep& line);
  // The second in the averages of the weights, where there are any.
  void eval(int64_t step, double val_loss, std::optional<double> ema_val_loss = {});
  // delay -> microbatches whose gradient was so many updates old.
  void delay(int stage, const std::map<int64_t, int64_t>& histogram);
  // The pipeline was emptied at a moment that the configuration does not name: "interrupt" or "checkpoint".
  void drain(int64_t step, const std::string& reason);
  // A checkpoint was written, which took so long, and training waited for it so long; durable when this returns.
  void checkpoint(int64_t step, double wait_seconds, double write_seconds);
  void segment(const MetricsSegment& line);
  void end(const MetricsEnd& line);
  // Lines from now on. It outlives this. What it throws comes out of the function that wrote the line.
  void tell(MetricsListener& listener) { listeners_.push_back(&listener); }
  // RunError when the file is not what was written: it was removed, moved, emptied or written by somebody else.
  void check() const;
  // Makes durable what is written, so that a checkpoint never has updates of which the metrics know nothing. RunError.
  // Any thread.
  void sync();

 private:
  void write(const std::string& line);
  OutputFile file_;
  uint64_t whole_;     // bytes of whole lines
  bool torn_ = false;  // whether half a line may follow them
  std::vector<MetricsListener*> listeners_;
};

// For a run that continues after `step`: replaces the file at once by what still holds, without lines of later updates,
// ends of earlier sessions and a torn last line, followed by the line that says so: {"event":"resume","step":...,
// "changed":{"optimizer.lr":[0.001,0.003]}}. InputError for a line that cannot be read.
void continue_metrics(const std::filesystem::path& path, int64_t step, const nlohmann::ordered_json& changed,
                      FileSystem& files = system_files());
// The text that such a run begins with.
std::string continued_metrics(std::string_view text, const std::string& origin, int64_t step,
                              const nlohmann::ordered_json& changed);

}  // namespace gyre
