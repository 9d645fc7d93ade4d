#include "gyre/train/follower.h"

#include "gyre/runtime/processes_executor.h"
#include "gyre/train/checked_run.h"
#include "gyre/train/resume.h"
#include "gyre/train/session.h"

namespace gyre {

TrainResult follow(const TrainOptions& options) {
  Ranks& ranks = *options.ranks;
  const RunDirectory run(options.out, options.files);
  Config config = session_config(options, run);
  ResumePoint from;
  if (options.resume && is_there(run.root())) {
    from = find_resume_point(run, config);
  }
  CheckedRun checked(std::move(config));
  if (options.resume) check_data(from, run, *checked.dataset);

  const RankMap map(checked.schedule.workers, ranks.world());
  const auto pipeline = begin_pipeline(checked, from, map.workers_of(ranks.rank()));
  meet(ranks, map, checked, from, *pipeline);
  from.checkpoint.reset();

  TrainResult result;
  result.finished =
      follow(*pipeline, ranks, map, {checked.train_batches.get(), checked.val_batches.source.get(), options.stop}) ==
      RunEnd::Finished;
  return result;
}

}  // namespace gyre
