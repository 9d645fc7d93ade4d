// Where a session begins: anew, or where an earlier one of the same run was saved. Everything is read and compared
// before anything is changed, so that what is refused stays as it is.
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

// A checkpoint that is of no use.
struct DamagedStep {
  int64_t step = 0;
  std::string fault;
};

struct ResumePoint {
  int64_t step() const { return checkpoint ? checkpoint->record().step : 0; }

  std::optional<CheckpointReader> checkpoint;  // none: from the beginning
  std::vector<DamagedStep> damaged;            // those after it, the newest first
  RunRecord record;                            // of the metrics up to there
  std::vector<ConfigChange> changes;           // of the configuration, since the last session
};

// InputError when the run's configuration, metrics and checkpoints do not belong together, or not to `config`: another
// model or seed, a gap in the metrics, checkpoints that were written and are not there. A checkpoint whose manifest is
// damaged is passed over if there is one before it.
ResumePoint find_resume_point(const RunDirectory& run, const Config& config);
// The checkpoint of `point` turned out to be damaged: where the one before it leads. Throws `damage` if there is none.
ResumePoint find_earlier_point(const RunDirectory& run, const Config& config, const ResumePoint& point,
                               const DamagedCheckpoint& damage);

// For a run without a checkpoint: InputError when its metrics say that there was one, or that updates were made and
// checkpoints/ is not the directory that the run made. One that was stopped before its first checkpoint begins again.
void refuse_lost_checkpoints(const RunDirectory& run, const RunRecord& record);

// InputError unless tokens and tokenizer are those that the run was begun with.
void check_data(const ResumePoint& point, const RunDirectory& run, const Dataset& dataset);

// Whether the run is past its last update, or at it with all that is written at the end.
bool is_complete(const ResumePoint& point, const Config& config);

// For a run that is to begin: InputError when a run, or what is left of one, lies in its directory.
void refuse_to_replace_run(const RunDirectory& run);

}  // namespace gyre
