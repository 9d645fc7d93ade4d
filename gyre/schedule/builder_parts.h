// What builders share: a schedule of one pipeline with stage k on worker k, and its actions.
#pragma once

#include "gyre/schedule/builders.h"

namespace gyre {

// Placement and sizes filled in, programs empty, shift = window.
Schedule one_pipeline(const ScheduleOptions& options, const std::string& name);

inline Action forward(int stage, int64_t microbatch) {
  return {ActionKind::Forward, 0, stage, microbatch};
}
inline Action backward(int stage, int64_t microbatch) {
  return {ActionKind::Backward, 0, stage, microbatch};
}
inline Action update(int stage, int64_t window) {
  return {ActionKind::Update, 0, stage, window};
}

}  // namespace gyre
