// What every process of a run does before its first update, alike: its configuration, its part of the pipeline, and
// what it compares with the others.
#pragma once

#include "gyre/config/config.h"
#include "gyre/runtime/pipeline.h"
#include "gyre/runtime/rank_map.h"
#include "gyre/runtime/ranks/ranks.h"
#include "gyre/train/checked_run.h"
#include "gyre/train/run_directory.h"
#include "gyre/train/trainer.h"

namespace gyre {

// The configuration of this session, resolved: from the file, or from the run that is resumed. InputError also for an
// executor that cannot run in the processes there are.
Config session_config(const TrainOptions& options, const RunDirectory& run);

// What all processes of a run must have alike. `pipeline` is this one's part.
RankFacts facts_of(const CheckedRun& checked, const Pipeline& pipeline);

// The others meet, and are compared. ToldElsewhere when rank 0 has refused.
void meet(Ranks& ranks, const RankMap& map, const CheckedRun& checked, const Pipeline& pipeline);

}  // namespace gyre
