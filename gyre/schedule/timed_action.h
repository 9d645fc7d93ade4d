// An action with the time it took: what simulations predict and runs measure, in the same form.
#pragma once

#include "gyre/schedule/action.h"

namespace gyre {

struct TimedAction {
  Action action;
  double start = 0, end = 0;
};

}  // namespace gyre
