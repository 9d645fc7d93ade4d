// Writes live.json of a running session (report/live.h) from time to time, from what workers, processes and updates
// report. No bit of the run depends on it. That the file cannot be written is reported once, and the next time it is
// tried again.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gyre/config/config.h"
#include "gyre/report/live.h"
#include "gyre/report/metrics.h"
#include "gyre/report/progress.h"
#include "gyre/runtime/ranks/rank_status.h"
#include "gyre/train/run_directory.h"

namespace gyre {

class LiveFile {
 public:
  using Clock = std::chrono::steady_clock;

  // Writes the file at once. With [run] live_seconds = 0 nothing is ever written, and an earlier session's file is
  // removed. started: when the session began. `progress` and `files` must outlive this object.
  LiveFile(const RunDirectory& run, const Config& config, Clock::time_point started, int64_t step, int64_t tokens,
           Progress& progress, FileSystem& files);

  // Sets what the run is doing. Writes the file unless that was done a moment ago.
  void enter(const std::string& state);
  void step(const MetricsStep& line);
  void evaluated(double loss) { run_.val_loss = loss; }
  // When the status of the workers is wanted next, and what it is then: [process], as each has last reported it.
  Clock::time_point next_look() const;
  void look(const std::vector<RankStatus>& processes);
  // Sets how the session ended, and writes the file at once.
  void end(const std::string& status);

 private:
  void take(const WorkerStatus& worker, int process);
  void write();

  std::filesystem::path path_;
  Progress& progress_;
  FileSystem& files_;
  const bool writes_;
  bool said_ = false;  // that the file cannot be written
  Clock::time_point started_, written_ = Clock::now();
  Clock::time_point looked_ = written_;  // the last look(); enter() may write more often
  LiveRun run_;
  std::map<int, WorkerStatus> seen_;  // by worker, as of the last look()
  std::map<int, LiveWorker> workers_;
};

}  // namespace gyre
