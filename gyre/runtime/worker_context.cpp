#include "gyre/runtime/worker_context.h"

#include <fmt/format.h>

#include "gyre/core/error.h"

namespace gyre {

int64_t WorkerContext::checked_version(const Action& action, int64_t found) {
  const int64_t expected = analysis.track(action);
  if (found != expected) {
    throw RunError(fmt::format("action {} found weight version {} where the schedule's analysis says {}",
                               to_string(action, schedule().pipelines), found, expected));
  }
  return found;
}

}  // namespace gyre
