// What a process reports about its workers while a segment runs: to rank 0 with every beat, and to observers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gyre/tensors/process_memory.h"

namespace gyre {

// A worker waits for several others, or for nobody in particular.
inline constexpr int kNobody = -1;

struct WorkerStatus {
  // The delays of the gradients that one stage has made.
  struct Delays {
    double sum = 0;  // in updates
    int64_t gradients = 0;
  };
  int worker = 0;
  bool inside = false;  // inside its action, or about to be
  std::string action;   // "2F17"; empty: its program has ended
  std::string needs;    // "the activation of 1F17 from worker 1"; empty: it waits for nothing
  // Since the segment began:
  double seconds = 0;
  std::map<int, double> waited;  // seconds without work, by the worker that it waited for, or kNobody
  std::map<int, Delays> delays;  // by stage
  bool takes_turns = false;      // it has no thread of its own: its waiting means nothing
  // Messages that have come and that it has not taken.
  int64_t activations = 0, gradients = 0, others = 0;
};
// "worker 2 inside 2F17", "worker 2 at 2F17, waiting for the activation of 1F17 from worker 1", "worker 2 has
// finished".
std::string to_string(const WorkerStatus& worker);
std::string to_string(const std::vector<WorkerStatus>& workers);

struct RankStatus {
  uint64_t steps = 0;                 // steps in which its workers did something
  uint64_t parts = 0;                 // of messages, that have come (Ranks::parts)
  bool computing = false;             // some worker is inside one
  bool stop = false;                  // it was asked to stop
  std::vector<WorkerStatus> workers;  // empty between segments
  ProcessMemory memory;
};

// A text form, for processes of the same build.
std::string to_json(const RankStatus& status);
RankStatus parse_rank_status(const std::string& text);

}  // namespace gyre
