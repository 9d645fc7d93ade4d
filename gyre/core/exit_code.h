// What a process ends with; the README explains the numbers to users.
#pragma once

namespace gyre {

inline constexpr int kFailed = 1;
inline constexpr int kBadInput = 2;       // nothing was changed
inline constexpr int kDiverged = 3;       // another attempt will not help
inline constexpr int kNoRoom = 4;         // another attempt helps once there is room on a disk
inline constexpr int kInterrupted = 130;  // by SIGINT
inline constexpr int kTerminated = 143;   // by SIGTERM or SIGHUP

}  // namespace gyre
