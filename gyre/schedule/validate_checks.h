// The checks that validate() makes, in this order. Each throws InvalidSchedule and relies on those before it.
#pragma once

#include <cstdint>
#include <string>

#include "gyre/schedule/schedule.h"

namespace gyre {

// Checks that sizes are consistent, that every worker named exists, and that no worker owns two shards of a stage.
void check_placement(const Schedule& schedule);

// Checks that every action is on its worker, that every repetition of the periods does for each stage what its
// microbatches need, and that no number is left out. It counts actions, which is fast for programs of a hundred
// million, and leaves it to check_each_once to name the action where the counts are wrong.
void check_programs(const Schedule& schedule);

// Checks that a replica, or for updates a shard (`pipeline` is its number) of a stage, has each number of a kind once
// when its worker's program is repeated forever. A backward may be in halves: Backward stands for both ways.
void check_each_once(const Schedule& schedule, ActionKind kind, int pipeline, int stage);

// Checks that every action of the restriction to `microbatches` can be performed once, that none is missing, and that
// workers can go on forever without waiting for each other in a circle.
void check_execution(const Schedule& schedule, int64_t microbatches);

[[noreturn]] void fail_validation(const Schedule& schedule, const std::string& what);
// Names the action and the worker that it is on, or is missing on.
[[noreturn]] void fail_validation(const Schedule& schedule, int worker, const Action& action, const std::string& what);

}  // namespace gyre
