// live.json: what a run is doing now, for whoever looks at it (gyre top). One object, replaced as a whole about once a
// second; nothing of it is needed to continue a run, or to know what came of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

// Shares are of the time between the two last times that the figures were taken.
struct LiveWorker {
  // For whom it waited: a worker's number, or -1 where that is several, or none.
  struct Wait {
    int64_t worker = -1;
    double share = 0;
    bool operator==(const Wait&) const = default;
  };
  int64_t worker = 0;
  int64_t process = 0;  // that it is in
  std::string action;   // "2F17": that it is at; empty: it has none left before the pipeline is empty
  std::string needs;    // what that still waits for, "the activation of 1F17 from worker 1"; empty: it is inside it
  std::optional<double> busy;  // share of the time with work; nothing where workers take turns
  std::vector<Wait> waits;     // the longest first
  // Messages that have come and that it has not taken.
  int64_t activations = 0, gradients = 0, others = 0;
  bool operator==(const LiveWorker&) const = default;
};

// Of one process, in bytes.
struct LiveProcess {
  int64_t resident = 0, peak_resident = 0;
  int64_t tensors = 0, peak_tensors = 0;  // large ones on the host; 0: nobody counts them
  bool operator==(const LiveProcess&) const = default;
};

struct LiveRun {
  // starting | training | evaluating | saving; or how the session ended: finished | interrupted | diverged | failed
  std::string state = "starting";
  double written = 0;  // when, in seconds since 1970
  double period = 0;   // seconds after which it should be written again
  // The process that writes, on its host: its start is by the host's own count, so that no later process of that
  // number is taken for it.
  std::string host;
  int64_t pid = 0, pid_started = 0;
  int64_t step = 0, updates = 0, tokens = 0;
  std::optional<double> loss, val_loss, lr, grad_norm;  // nothing: not known yet, or not finite
  std::optional<double> tokens_per_second, seconds_left;
  double seconds = 0;                         // of this session
  std::vector<std::optional<double>> delays;  // [stage]: mean delay of the gradients since the last drain, in updates
  std::vector<LiveWorker> workers;
  std::vector<LiveProcess> processes;

  bool ended() const;
  bool operator==(const LiveRun&) const = default;
};

std::string to_json(const LiveRun& run);
// InputError that names `origin`.
LiveRun parse_live_run(std::string_view text, const std::string& origin);

// When the process of that number began, by the count of this host; nothing where there is none.
std::optional<int64_t> process_started(int64_t pid);
// Whether whoever writes the figures is gone: its process is, on this host; on another, it has said nothing for long.
bool is_gone(const LiveRun& run, double now);

}  // namespace gyre
