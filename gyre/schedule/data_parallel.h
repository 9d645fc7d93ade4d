// Data parallelism as a transformation of a schedule: R replicas of a whole pipeline, each on workers of its own, and
// one update of each stage for all of them. Whatever is true of a schedule and done with it (validation, delays,
// simulation, execution) holds for the result without knowing of replicas.
//
// Replica r of pipeline p is pipeline p * R + r. Its microbatch b is microbatch b * R + r of all, so that windows R
// times as long hold the same microbatches of each replica. Worker w of replica r is r * W + w. Every replica runs the
// program of the first, at the same versions: delays and mismatches are those of the schedule itself. The owners of
// stages are the first replica's; where that updates a stage whose weights change at once, the others adopt.
#pragma once

#include "gyre/schedule/builders.h"
#include "gyre/schedule/schedule.h"

namespace gyre {

// `schedule` is valid. InputError, before anything is made, where there would be too many workers, pipelines or
// actions, or too long a window; `names` says what the number of replicas is called.
Schedule replicated(Schedule schedule, int replicas, const OptionNames& names = {});

}  // namespace gyre
