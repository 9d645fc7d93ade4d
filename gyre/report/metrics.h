// metrics.jsonl: one JSON object per line, for users' scripts. Reading a number back gives the same bits; numbers that
// are not finite are null. Each line is written by one call, so a crash can tear only the last line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
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
  double loss = 0;                               // of the last step
  std::optional<double> val_loss, ema_val_loss;  // the second with the averaged weights, if there are any
  int64_t tokens = 0;                            // of the whole run
  std::optional<double> tokens_per_second;       // of this session, while training; empty before its first drain
  std::optional<double> bubble_fraction;  // share of worker time spent waiting; only where workers run side by side
  double seconds = 0;
  int64_t skipped_updates = 0;    // updates of stages skipped for gradients that were not finite
  double save_wait_seconds = 0;   // for which training stood still for the session's checkpoints
  double save_write_seconds = 0;  // for which they were written, in the background or not
};

// Measurements of the updates since the last drain.
struct MetricsSegment {
  int64_t step = 0;
  double seconds = 0;
  std::vector<double> bubbles;  // [worker]: share of the time without work; empty if workers do not run in parallel
  std::vector<double> delays;   // [stage]: mean delay of a gradient, in updates
  // [process]: peak bytes since the process began: of large tensors on the host (empty if they are not counted), and of
  // resident memory.
  std::vector<int64_t> peak_tensor_bytes, peak_resident_bytes;
};

class MetricsLine;  // metrics_reader.h

// Is called with each line after it is written. The files for other programs are made from these lines alone.
class MetricsListener {
 public:
  virtual ~MetricsListener() = default;
  virtual void hear(const MetricsLine& line) = 0;
};

class MetricsWriter {
 public:
  // Appends to the file. Throws RunError if it cannot be written.
  explicit MetricsWriter(const std::filesystem::path& path, FileSystem& files = system_files());

  void step(const MetricsStep& line);
  // ema_val_loss: the loss with averaged weights, if there are any.
  void eval(int64_t step, double val_loss, std::optional<double> ema_val_loss = {});
  // histogram: delay -> number of microbatches whose gradient had this delay, in updates.
  void delay(int stage, const std::map<int64_t, int64_t>& histogram);
  // The pipeline was drained at a moment that the configuration does not determine. reason: "interrupt" or
  // "checkpoint".
  void drain(int64_t step, const std::string& reason);
  // A checkpoint was written: training waited for it `wait_seconds`, and writing took `write_seconds`. The line is
  // durable when this returns. RunError also as check().
  void checkpoint(int64_t step, double wait_seconds, double write_seconds);
  void segment(const MetricsSegment& line);
  void end(const MetricsEnd& line);
  // The listener hears all lines from now on. It must outlive this object. Its exceptions leave the function that wrote
  // the line.
  void tell(MetricsListener& listener) { listeners_.push_back(&listener); }
  // Throws RunError if the file's size is not what was written: it was removed, moved, emptied or written by another
  // program.
  void check() const;
  // Makes everything written durable, so that a checkpoint never has updates that the metrics lack. Throws RunError.
  // May be called on any thread.
  void sync();

 private:
  void write(const std::string& line);
  OutputFile file_;
  uint64_t whole_;     // bytes of complete lines
  bool torn_ = false;  // whether part of a line may follow them
  std::vector<MetricsListener*> listeners_;
};

// The first lines of a file.
struct FirstLines {
  uint64_t bytes = 0;
  int64_t lines = 0;
};

// For a run that continues after `step`: atomically replaces the file by the lines that are still valid (no lines of
// later updates, no "end" and "delay" lines of earlier sessions, no torn last line), followed by
// {"event":"resume","step":...,"changed":{"optimizer.lr":[0.001,0.003]}}. Throws InputError for a line that cannot be
// read. kept: first lines that are known to be valid (RunRecord::kept), which are copied unread.
void continue_metrics(const std::filesystem::path& path, int64_t step, const nlohmann::ordered_json& changed,
                      const FirstLines& kept = {}, FileSystem& files = system_files());

}  // namespace gyre
