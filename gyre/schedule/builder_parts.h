// What builders share: checks, a schedule of one pipeline with stage k on worker k, and names for its actions.
#pragma once

#include "gyre/schedule/builders.h"

namespace gyre {

// InputError for numbers out of range.
void check_options(const ScheduleOptions& options, const std::string& name);

// Placement and sizes filled in, programs empty, shift = window.
Schedule one_pipeline(const ScheduleOptions& options, const std::string& name);

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
