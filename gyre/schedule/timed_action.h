// An action with its start and end, as a simulation predicts them or a run measures them.
#pragma once

#include <optional>

#include "gyre/schedule/action.h"

namespace gyre {

struct TimedAction {
  Action action;
  double start = 0, end = 0;
  std::optional<double> came = {};  // when the tensor that it needs arrived, if another process sent it
};

}  // namespace gyre
