// What others need to know of an executor before it is made. Free of torch. runtime/executor.cpp makes the executor of
// the same name.
#pragma once

#include <string>

#include "gyre/core/registry.h"

namespace gyre {

struct ExecutorKind {
  std::string name;
  // Whether workers compute at the same time, each on cores of its own; otherwise one after the other.
  bool side_by_side = false;
};

const Registry<ExecutorKind>& executor_kinds();

}  // namespace gyre
