// A segment: the part of a run between two drain points, during which workers run the schedule undisturbed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "gyre/batches/batch.h"
#include "gyre/optim/weight_average.h"
#include "gyre/runtime/ranks/rank_status.h"
#include "gyre/schedule/schedule.h"
#include "gyre/schedule/timed_action.h"
#include "gyre/tensors/process_memory.h"

namespace gyre {

struct Segment {
  const Schedule* schedule = nullptr;  // the pipeline's own, or a forward-only one of the same placement
  const BatchSource* batches = nullptr;
  int64_t first_microbatch = 0;                  // of the run; the schedule's own numbers start at 0 in every segment
  int64_t first_update = 0;                      // updates made before this segment
  int64_t microbatches = 0;                      // to take in, unless stopped
  bool trace = false;                            // keep the times of every action
  ModelWeights weights = ModelWeights::Trained;  // which of them a forward-only one reads
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();  // from which they are counted
  // When it becomes true (a signal, a checkpoint that is due), the segment drains at the next window's end. Asked on
  // the thread that called the executor.
  std::function<bool()> stop = {};
  // A signal: the segment drains as if `stop` were true, and an executor that sleeps is woken, to tell what it waits
  // for.
  std::stop_token interrupt;
};

// Hears what happens, on the thread that called the executor, in an order that is fixed per stage.
class SegmentObserver {
 public:
  virtual ~SegmentObserver() = default;
  // Mean loss of a microbatch (global number).
  virtual void on_loss(int64_t microbatch, double loss) = 0;
  // Stage `stage` made update `update` (from 1): squared norms of its gradients before clipping, one per parameter.
  virtual void on_update(int stage, int64_t update, const std::vector<double>& squared_norms) = 0;

  // The segment was interrupted: it will drain. Told at once, whatever the workers are doing.
  virtual void on_interrupt() {}
  // It ends when its first `microbatches` are through. Told once the workers have said what they have taken in.
  virtual void on_drain(int64_t /*microbatches*/) {}
  // A worker is inside one action for longer than stall_seconds. Told once for each; the run waits for it.
  virtual void on_slow_action(const std::string& /*what*/) {}
  // Interrupted, and nothing has finished for drain_deadline(): a worker does not come back from an action. Its thread
  // cannot be ended, so the executor goes on waiting unless the process is ended here. Told once.
  virtual void on_stuck_drain(const std::string& /*what*/) {}

  // When it wants to know what the workers are doing, and what they then are: of each process. That costs a look at all
  // of them, so it is asked for now and then.
  virtual std::chrono::steady_clock::time_point next_look() const {
    return std::chrono::steady_clock::time_point::max();
  }
  virtual void on_look(const std::vector<RankStatus>& /*processes*/) {}
};

struct WorkerReport {
  double busy_seconds = 0;
  int64_t actions = 0;
  ProcessMemory memory;            // of its process, when its program had ended
  std::vector<TimedAction> trace;  // when the segment asked for it; seconds from its start
};

// What one kind of action at one stage took; the first of a segment, which warms caches up, is not counted where there
// are more.
struct ActionCost {
  int64_t count = 0;
  double seconds = 0;
  double first_seconds = 0;
  double mean() const { return count > 1 ? seconds / static_cast<double>(count - 1) : first_seconds; }
};

// What one microbatch needs at one stage.
struct StageSizes {
  int64_t activation_bytes = 0;  // held between forward and backward
  int64_t output_bytes = 0;      // sent to the next stage
};

struct SegmentReport {
  int64_t microbatches = 0;  // taken in and finished; fewer than asked for after a stop
  double seconds = 0;
  std::vector<WorkerReport> workers;
  std::vector<std::map<ActionKind, ActionCost>> costs;  // [stage]
  std::vector<StageSizes> sizes;                        // [stage]
  std::vector<std::map<int64_t, int64_t>> delay;        // [stage]: delay seen -> microbatches
  std::vector<std::map<int64_t, int64_t>> mismatch;     // [stage]
  std::vector<int64_t> skipped;                         // [stage]: updates whose gradient was not finite
  std::vector<int64_t> peak_in_flight;                  // [stage]: microbatches held at once
  std::vector<int64_t> peak_weight_buffers;             // [stage]: weight buffers alive at once, masters included
};

}  // namespace gyre
