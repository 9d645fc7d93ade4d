// What every process of a run does alike before its first update: it reads the configuration and compares itself with
// the other processes.
#pragma once

#include "gyre/config/config.h"
#include "gyre/runtime/pipeline.h"
#include "gyre/runtime/rank_map.h"
#include "gyre/runtime/ranks/ranks.h"
#include "gyre/train/checked_run.h"
#include "gyre/train/run_directory.h"
#include "gyre/train/trainer.h"

namespace gyre {

// The resolved configuration of this session: from the file, or from the run that is resumed. Throws InputError, also
// for an executor that cannot run in as many processes.
Config session_config(const TrainOptions& options, const RunDirectory& run);

// What must be the same in all processes of a run. `pipeline` is this one's part.
RankFacts facts_of(const CheckedRun& checked, const Pipeline& pipeline);

// Meets the other processes and compares facts with them. Throws InputError on rank 0 if they differ or one of them
// cannot begin, and ToldElsewhere on the others.
void meet(Ranks& ranks, const RankMap& map, const CheckedRun& checked, const Pipeline& pipeline);

}  // namespace gyre
