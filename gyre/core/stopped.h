// How what is being made ends when a stop is requested: prepared text, an imported or an exported model.
#pragma once

#include <stop_token>

#include "gyre/core/error.h"

namespace gyre {

// Nothing of what was being made stays.
class Stopped : public RunError {
 public:
  Stopped() : RunError("stopped; nothing was kept") {}
};

inline void throw_if_stopped(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Stopped();
}

}  // namespace gyre
