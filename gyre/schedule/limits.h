// How large a schedule may be. Whoever reads a size from a user (flags, configurations, schedule files) checks it
// against these before anything is built, so that no product of sizes overflows and a mistyped number is an error at
// once instead of gigabytes.
#pragma once

#include <cstdint>

namespace gyre {

inline constexpr int64_t kMostStages = 1 << 16;  // of workers and pipelines too
// Actions of all programs together, which are held in memory (16 bytes each). Every microbatch of a window is one
// action at least, so this bounds windows and repetitions as well.
inline constexpr int64_t kMostActions = int64_t{1} << 27;
inline constexpr int64_t kMostWindow = kMostActions;
// Of a backward's time to a forward's.
inline constexpr double kLeastRatio = 1e-3, kMostRatio = 1000;
// A number that an action of a file may have. Times kMostWindow it is still an int64.
inline constexpr int64_t kMostMicrobatch = int64_t{1} << 35;
// Actions that are walked for one answer, by the simulator or the validator: a minute or two.
inline constexpr int64_t kMostSteps = int64_t{1} << 32;
// Actions of a CSV, and cells of a grid.
inline constexpr int64_t kMostWritten = int64_t{1} << 24;
// Actions of a trace, of some 400 bytes each.
inline constexpr int64_t kMostTraced = int64_t{1} << 21;

}  // namespace gyre
