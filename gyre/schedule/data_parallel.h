// Data parallelism as a transformation of a schedule: R replicas of a whole pipeline, each on workers of its own, and
// one update of each stage for all of them. Whatever is true of a schedule and done with it (validation, delays,
// simulation, execution) holds for the result without knowing of replicas.
//
// Replica r of pipeline p is pipeline p * R + r. Its microbatch b is microbatch b * R + r of all, so that windows R
// times as long hold the same microbatches of each replica. Worker w of replica r is r * W + w. Every replica runs the
// program of the first, at the same versions: delays and mismatches are those of the schedule itself.
//
// Either each stage's optimizer is cut into a shard for every replica (ZeRO stage 1, Rajbhandari et al., 2020): each
// replica updates its shard where its program says, and all take the version from all. Or the first replica's owners
// make the updates alone. Where the schedule's weights change at once with an update, an adoption follows in its place.
#pragma once

#include "gyre/schedule/builders.h"
#include "gyre/schedule/schedule.h"

namespace gyre {

// `schedule` is valid. InputError, before anything is made, where there would be too many workers, pipelines or
// actions, or too long a window; `names` says what the number of replicas is called.
Schedule replicated(Schedule schedule, int replicas, bool shard_optimizer, const OptionNames& names = {});

}  // namespace gyre
