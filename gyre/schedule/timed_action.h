// An action with the time it took: what simulations predict and runs measure, in the same form.
#pragma once

#include <optional>

#include "gyre/schedule/action.h"

namespace gyre {

struct TimedAction {
  Action action;
  double start = 0, end = 0;
  std::optional<double> came = {};  // when the tensor that it needs was there, of one that another process sent
};

}  // namespace gyre
