// How large a schedule may be. Sizes that come from a user (flags, configurations, schedule files) are checked against
// these limits before anything is built, so that no product of sizes overflows and a mistyped number is an error at
// once instead of allocating gigabytes.
#pragma once

#include <cstdint>

namespace gyre {

inline constexpr int64_t kMostStages = 1 << 16;  // also for workers and pipelines
// Actions of all programs together, which are held in memory (16 bytes each). Every microbatch of a window is at least
// one action, so this limits windows and repetitions as well.
inline constexpr int64_t kMostActions = int64_t{1} << 27;
inline constexpr int64_t kMostWindow = kMostActions;
// Ratio of a backward's time to a forward's.
inline constexpr double kLeastRatio = 1e-3, kMostRatio = 1000;
// The number of an action in a file. Multiplied by kMostWindow it still fits in an int64.
inline constexpr int64_t kMostMicrobatch = int64_t{1} << 35;
// Actions that the simulator or the validator walks for one answer: a minute or two.
inline constexpr int64_t kMostSteps = int64_t{1} << 32;
// Actions in a CSV, and cells in a grid.
inline constexpr int64_t kMostWritten = int64_t{1} << 24;
// Actions in a trace, about 400 bytes each.
inline constexpr int64_t kMostTraced = int64_t{1} << 21;

}  // namespace gyre
