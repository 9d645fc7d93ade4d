// The checks that validate() makes, in this order. Each throws InputError and relies on those before it.
#pragma once

#include <cstdint>
#include <string>

#include "gyre/schedule/schedule.h"

namespace gyre {

// Checks that sizes are consistent, that every worker named exists, and that no worker owns two shards of a stage.
void check_placement(const Schedule& schedule);

// Checks that every repetition of the periods does for each stage what its microbatches need, and that no number is
// left out.
void check_programs(const Schedule& schedule);

// Checks that every action of the restriction to `microbatches` is on its worker and can be performed once, and that
// none is missing.
void check_execution(const Schedule& schedule, int64_t microbatches);

[[noreturn]] void fail_validation(const Schedule& schedule, const std::string& what);

}  // namespace gyre
