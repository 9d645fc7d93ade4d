// How work ends when a stop is requested before it has had an effect: text that is being prepared, a model that is
// imported or exported, a run that has not begun.
#pragma once

#include <stop_token>
#include <string>

#include "gyre/core/error.h"
#include "gyre/core/exit_code.h"

namespace gyre {

// Nothing of what was being made stays. The exit code is that after SIGTERM.
class Stopped : public Error {
 public:
  explicit Stopped(const std::string& what) : Error(what, kTerminated) {}
};

inline void throw_if_stopped(const std::stop_token& stop, const char* what = "stopped; nothing was kept") {
  if (stop.stop_requested()) throw Stopped(what);
}

}  // namespace gyre
