#include "gyre/train/follower.h"

#include <string>
#include <utility>

#include "gyre/build/build.h"
#include "gyre/runtime/processes_executor.h"
#include "gyre/train/checked_run.h"
#include "gyre/train/session.h"
#include "gyre/train/share_keeper.h"

namespace gyre {

TrainResult train_as_follower(const TrainOptions& options) {
  Ranks& ranks = *options.ranks;
  const RunDirectory run(options.out, options.files);
  Config config = session_config(options, run);
  CheckedRun checked(std::move(config));
  const RankMap map(checked.schedule.workers, ranks.world());
  const auto pipeline =
      build_pipeline(checked.config, std::move(checked.schedule), map.workers_of(ranks.rank()), options.process);
  meet(ranks, map, checked, *pipeline);

  ShareKeeper share(run, checked.config, options.resume, *pipeline, options.files, ranks);
  const FollowerSources sources = {checked.train_batches.get(), checked.val_batches.source.get(),
                                   [&share](const std::string& question) { return share.answer(question); },
                                   options.stop, options.abandon};
  TrainResult result;
  result.finished = carry_out_commands(*pipeline, ranks, map, sources) == RunEnd::Finished;
  return result;
}

}  // namespace gyre
