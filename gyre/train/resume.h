// Finds where a session begins: anew, or where an earlier one of the same run was saved. Everything is read and
// compared before anything is changed, so that a run that is refused stays as it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gyre/checkpoint/checkpoint.h"
#include "gyre/config/config.h"
#include "gyre/config/config_changes.h"
#include "gyre/data/sources.h"
#include "gyre/report/metrics_reader.h"
#include "gyre/train/run_directory.h"

namespace gyre {

// A checkpoint that is damaged, or from which the run would only diverge again.
struct DamagedStep {
  int64_t step = 0;
  std::string fault;
};

struct ResumePoint {
  int64_t step() const { return checkpoint ? checkpoint->record().step : 0; }

  std::optional<CheckpointReader> checkpoint;  // empty: start from the beginning
  std::vector<DamagedStep> damaged;            // checkpoints after that one, the newest first
  RunRecord record;                            // of the metrics up to its step
  std::vector<ConfigChange> changes;           // of the configuration, since the last session
};

// Throws InputError if the run's configuration, metrics and checkpoints do not fit each other or `config`: another
// model or seed, other weights to begin with, a gap in the metrics, checkpoints that were written and are missing. A
// checkpoint whose manifest is damaged is skipped if there is one before it; so is, after a run that diverged, one that
// was saved while updates were left out, if there is a sound one before it.
ResumePoint find_resume_point(const RunDirectory& run, const Config& config);
// For a checkpoint of `point` that turned out to be damaged: the resume point of the one before it. Throws `damage` if
// there is none.
ResumePoint find_earlier_point(const RunDirectory& run, const Config& config, const ResumePoint& point,
                               const DamagedCheckpoint& damage);

// For a run without a checkpoint: throws InputError if its metrics say that there was one, or that updates were made
// and checkpoints/ is not the directory that the run made. A run that was stopped before its first checkpoint begins
// again.
void refuse_lost_checkpoints(const RunDirectory& run, const RunRecord& record);

// Throws InputError unless tokens and tokenizer are those that the run was begun with, and give the model that it has.
// `config`: with its vocabulary known.
void check_data(const ResumePoint& point, const RunDirectory& run, const Config& config, const Dataset& dataset);

// Whether the run is past its last update, or at it with its end recorded as "finished".
bool is_complete(const ResumePoint& point, const Config& config);

// For a run that is known to have begun: throws InputError if nothing of it is there.
void refuse_lost_run(const RunDirectory& run, const ResumePoint& point);

// For a new run: throws InputError if its directory has a run, or what is left of one.
void refuse_to_replace_run(const RunDirectory& run);

}  // namespace gyre
