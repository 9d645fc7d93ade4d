// live.json: what a run is doing now, for gyre top. One object, replaced as a whole about once a second. It is needed
// neither to continue a run nor to know its results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

// Shares are fractions of the time between the last two samples.
struct LiveWorker {
  // What it waited for: a worker's number, or -1 if that is several workers or none.
  struct Wait {
    int64_t worker = -1;
    double share = 0;
    bool operator==(const Wait&) const = default;
  };
  int64_t worker = 0;
  int64_t process = 0;  // the process that it is in
  std::string action;   // its current action, "2F17"; empty: it has none left before the pipeline is empty
  std::string needs;    // what the action waits for, "the activation of 1F17 from worker 1"; empty: it is running
  std::optional<double> busy;  // share of the time with work; empty if workers take turns on one thread
  std::vector<Wait> waits;     // the longest first
  // Messages that have arrived and that it has not yet taken.
  int64_t activations = 0, gradients = 0, others = 0;
  bool operator==(const LiveWorker&) const = default;
};

// Of one process, in bytes.
struct LiveProcess {
  int64_t resident = 0, peak_resident = 0;
  int64_t tensors = 0, peak_tensors = 0;  // large tensors, on the host or on the GPU that holds most; 0: not counted
  bool operator==(const LiveProcess&) const = default;
};

struct LiveRun {
  // starting | training | evaluating | saving; or how the session ended: finished | interrupted | diverged | failed
  std::string state = "starting";
  double written = 0;  // when, in seconds since 1970
  double period = 0;   // seconds after which it should be written again
  // The writing process, its host and its process_space(). pid_started is process_started(pid), which tells it from a
  // later process with the same number.
  std::string host, pid_space;
  int64_t pid = 0, pid_started = 0;
  int64_t step = 0, updates = 0, tokens = 0;
  std::optional<double> loss, val_loss, lr, grad_norm;  // empty: not known yet, or not finite
  std::optional<double> tokens_per_second, seconds_left;
  double seconds = 0;                         // of this session
  std::vector<std::optional<double>> delays;  // [stage]: mean delay of the gradients since the last drain, in updates
  std::vector<LiveWorker> workers;
  std::vector<LiveProcess> processes;

  bool ended() const;
  bool operator==(const LiveRun&) const = default;
};

std::string to_json(const LiveRun& run);
// Throws InputError that names `origin`.
LiveRun parse_live_run(std::string_view text, const std::string& origin);

// The start time of a process, in clock ticks since this host booted; empty if there is no such process or it has
// ended.
std::optional<int64_t> process_started(int64_t pid);
// Whether the process that writes the figures can be looked at: not on another host, in another container, or where
// /proc hides it.
bool is_in_sight(const LiveRun& run);
// Whether that process is gone: if it is in sight, whether it has ended, and otherwise whether it has written nothing
// for long, which may also be a save.
bool is_gone(const LiveRun& run, double now);

}  // namespace gyre
