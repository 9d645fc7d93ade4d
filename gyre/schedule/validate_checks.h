// The checks that validate() consists of, in their order. Each throws InputError, and relies on those before it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gyre/schedule/schedule.h"

namespace gyre {

// Sizes fit each other, and every worker that is named is there.
void check_placement(const Schedule& schedule);

// Every repetition of the periods does for each stage what its microbatches need, and no number is left out.
void check_programs(const Schedule& schedule);

// Every action of the restriction to `microbatches` is on its worker and can be performed once, and none is missing.
void check_execution(const Schedule& schedule, int64_t microbatches);

// [pipeline]: its versions change at adoptions, not with the owners.
std::vector<bool> adopting_pipelines(const Schedule& schedule);

[[noreturn]] void fail_validation(const Schedule& schedule, const std::string& what);

}  // namespace gyre
