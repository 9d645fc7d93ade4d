// live.json of a run that is under way (report/live.h): puts together what workers, processes and updates say, and
// writes it now and then. It decides no bit of the run, and what cannot be written is said once and given up.
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

  // Written at once. With [run] live_seconds = 0 never, and what an earlier session left goes. `progress` and `files`
  // outlive it.
  LiveFile(const RunDirectory& run, const Config& config, int64_t step, int64_t tokens, Progress& progress,
           FileSystem& files);

  // What the run does from now on; written unless it was a moment ago.
  void enter(const std::string& state);
  void step(const MetricsStep& line);
  void evaluated(double loss) { run_.val_loss = loss; }
  // When the workers should be looked at again, and what they then are: [process], each as it was last heard.
  Clock::time_point next_look() const;
  void look(const std::vector<RankStatus>& processes);
  // How the session ended: written at once.
  void end(const std::string& status);

 private:
  void take(const WorkerStatus& worker, int process);
  void write();

  std::filesystem::path path_;
  Progress& progress_;
  FileSystem& files_;
  bool writes_;  // until it fails
  Clock::time_point started_ = Clock::now(), written_ = started_;
  Clock::time_point looked_ = started_;  // at workers; short segments are written of more often
  LiveRun run_;
  std::map<int, WorkerStatus> seen_;  // by worker, at the last look
  std::map<int, LiveWorker> workers_;
};

}  // namespace gyre
