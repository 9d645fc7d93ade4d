// What builders share: checks, a schedule of one pipeline with stage k on worker k, and functions that make actions.
#pragma once

#include <functional>
#include <vector>

#include "gyre/schedule/builders.h"
#include "gyre/schedule/builtins.h"

namespace gyre {

// Throws InputError for numbers out of range.
void check_options(const ScheduleOptions& options);

// Suitable windows of schedules that end each window with a flush: the longer the better; by default twice the stages.
SuitableWindows flushing_windows(const ScheduleOptions& options);

// How many actions all programs of a schedule have together.
using CountActions = int64_t (*)(int64_t stages, int64_t window);
// For a window between flushes: forwards, backwards and the update.
inline int64_t flushed_actions(int64_t stages, int64_t window) {
  return stages * (2 * window + 1);
}

// The most actions that the programs of one replica may have; those of all replicas are held in memory.
int64_t most_actions(const ScheduleOptions& options);
// Ends an error that says which sizes to make smaller; empty if there is one replica.
std::string or_fewer_replicas(const ScheduleOptions& options);

// Checks that options are in range, the window is at least `least_window`, and programs have no more than
// most_actions(). Otherwise throws InputError that says which size to change, and to what.
void check_length(const ScheduleOptions& options, CountActions count, int64_t least_window = 1);

// Placement and sizes filled in, programs empty, shift = window. Call check_length first.
Schedule one_pipeline(const ScheduleOptions& options);

// One pipeline that does the same in every window and updates at its end: `work` appends a stage's forwards and
// backwards of the microbatches 0 to window - 1. Calls check_length itself.
using WindowWork = std::function<void(int stage, int64_t window, std::vector<Action>& actions)>;
Schedule flushed_pipeline(const ScheduleOptions& options, const WindowWork& work);

inline Action forward(int stage, int64_t microbatch, int pipeline = 0) {
  return {ActionKind::Forward, pipeline, stage, microbatch};
}
inline Action backward(int stage, int64_t microbatch, int pipeline = 0) {
  return {ActionKind::Backward, pipeline, stage, microbatch};
}
inline Action backward_input(int stage, int64_t microbatch) {
  return {ActionKind::BackwardInput, 0, stage, microbatch};
}
inline Action backward_weights(int stage, int64_t microbatch) {
  return {ActionKind::BackwardWeights, 0, stage, microbatch};
}
inline Action update(int stage, int64_t window) {
  return {ActionKind::Update, 0, stage, window};
}
inline Action adopt(int stage, int64_t window, int pipeline = 0) {
  return {ActionKind::Adopt, pipeline, stage, window};
}

}  // namespace gyre
