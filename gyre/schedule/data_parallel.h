// Data parallelism as a transformation of a schedule: R replicas of a whole pipeline, each on its own workers, and one
// update of each stage for all of them. The result is an ordinary schedule: validation, delay analysis, simulation and
// execution need not know of replicas.
//
// Replica r of pipeline p is pipeline p * R + r. Its microbatch b gets number b * R + r, so that windows R times as
// long hold the same microbatches of each replica. Worker w of replica r is r * W + w, unless update-only workers are
// left out. Every replica runs the same program at the same versions, so delays and mismatches are those of the
// original schedule.
//
// Either each stage's optimizer is cut into one shard per replica (ZeRO stage 1, Rajbhandari et al., 2020): each
// replica updates its shard where its program has the update, and all replicas adopt the version that all shards make.
// Or only the first replica's owners make updates. Where the original schedule's weights change at the update itself,
// an adoption is put in its place.
#pragma once

#include "gyre/schedule/builders.h"
#include "gyre/schedule/schedule.h"

namespace gyre {

// `schedule` must be valid. Throws InputError, before anything is made, if there would be too many workers, pipelines
// or actions, or too many microbatches in a repetition. `names` has the user's name for the number of replicas.
Schedule replicated(Schedule schedule, int replicas, bool shard_optimizer, const OptionNames& names = {});

// The same with the replicas of `options`, and workers numbered as those ask.
Schedule replicated(Schedule schedule, const ScheduleOptions& options);

}  // namespace gyre
