// A segment: the part of a run between two drain points, in which workers run the schedule without interruption.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "gyre/batches/batch.h"
#include "gyre/core/error.h"
#include "gyre/optim/weight_average.h"
#include "gyre/runtime/ranks/rank_status.h"
#include "gyre/schedule/schedule.h"
#include "gyre/schedule/timed_action.h"
#include "gyre/tensors/process_memory.h"

namespace gyre {

struct Segment {
  const Schedule* schedule = nullptr;  // the pipeline's own, or a forward-only one of the same placement
  const BatchSource* batches = nullptr;
  int64_t first_microbatch = 0;  // number in the run; the schedule's own numbers start at 0 in every segment
  int64_t first_update = 0;      // updates made before this segment
  int64_t microbatches = 0;      // to take in, unless stopped; if it trains, a multiple of the window
  // Of the first so many, and of the windows that begin with them, the times of every action are recorded.
  int64_t traced_microbatches = 0;
  ModelWeights weights = ModelWeights::Trained;  // which of them a forward-only segment reads
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();  // time zero of the trace
  // When it returns true, as for a checkpoint that is due, the segment drains at the end of the current window. Called
  // on the thread that called the executor, until the segment ends; it may request `stop`.
  std::function<bool()> wants_drain = {};
  // The user wants the run to stop: the segment drains too, the observer hears of it at once, and an executor that
  // sleeps wakes up to report what it waits for.
  std::stop_token stop;
  bool drains_at_stop = true;  // false: it goes on to its end then
};

// Receives events of a segment, on the thread that called the executor, in an order that is fixed per stage.
class SegmentObserver {
 public:
  virtual ~SegmentObserver() = default;
  // Mean loss of a microbatch (global number).
  virtual void on_loss(int64_t microbatch, double loss) = 0;
  // Stage `stage` made update `update` (counted from 1), or left it out. squared_norms: of its gradients before
  // clipping, one per parameter.
  virtual void on_update(int stage, int64_t update, const std::vector<double>& squared_norms) = 0;

  // The run has diverged: the segment ends with a Divergence after `skipped` updates of stages that were left out.
  virtual void on_divergence(int64_t /*skipped*/) {}
  // The segment was interrupted and will drain. Called at once, whatever the workers are doing.
  virtual void on_interrupt() {}
  // After an interrupt: the segment ends after its first `microbatches`. Called once, when the workers have reported
  // what they have taken in.
  virtual void on_drain(int64_t /*microbatches*/) {}
  // A worker has been inside one action for longer than stall_seconds. Called once per action; the run goes on.
  virtual void on_slow_action(const std::string& /*what*/) {}
  // The segment should end, after a request to stop or an error, and a worker does not return from an action within
  // drain_deadline(). Its thread cannot be ended, so the executor goes on waiting unless the process is ended here.
  // `why` says all of this, and has the exit code of the error. Called once.
  virtual void on_stuck(const Error& /*why*/) {}

  // next_look: when the observer wants to see what workers are doing. on_look then gets the status of every process. A
  // look queries all workers, so it should be rare.
  virtual std::chrono::steady_clock::time_point next_look() const {
    return std::chrono::steady_clock::time_point::max();
  }
  virtual void on_look(const std::vector<RankStatus>& /*processes*/) {}
};

struct WorkerReport {
  double busy_seconds = 0;
  ProcessMemory memory;            // of its process, taken when the worker's program had ended
  std::vector<TimedAction> trace;  // if the segment asked for it; in seconds from the segment's start
};

// Time spent on one kind of action at one stage. mean() leaves out the first of a segment, which warms up caches,
// unless it is the only one.
struct ActionCost {
  int64_t count = 0;
  double seconds = 0;
  double first_seconds = 0;
  double mean() const { return count > 1 ? seconds / static_cast<double>(count - 1) : first_seconds; }
};

// Sizes of one microbatch at one stage.
struct StageSizes {
  int64_t activation_bytes = 0;  // held between forward and backward
  int64_t output_bytes = 0;      // sent to the next stage
};

struct SegmentReport {
  int64_t microbatches = 0;  // taken in and finished; fewer than requested after a stop
  double seconds = 0;
  std::vector<WorkerReport> workers;
  std::vector<std::map<ActionKind, ActionCost>> costs;  // [stage]
  std::vector<StageSizes> sizes;                        // [stage]
  std::vector<std::map<int64_t, int64_t>> delay;        // [stage]: observed delay -> microbatches
  std::vector<std::map<int64_t, int64_t>> mismatch;     // [stage]
  std::vector<int64_t> skipped;                         // [stage]: updates skipped because a gradient was not finite
};

}  // namespace gyre
