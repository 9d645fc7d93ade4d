#include "gyre/runtime/settings/executor_kind.h"

namespace gyre {

const Registry<ExecutorKind>& executor_kinds() {
  static const Registry<ExecutorKind> kinds("[pipeline] executor", {
                                                                       {.name = "replay", .side_by_side = false},
                                                                       {.name = "threads", .side_by_side = true},
                                                                       {.name = "processes", .side_by_side = true},
                                                                   });
  return kinds;
}

}  // namespace gyre
