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
  CheckedRun checked(std::move(config), {}, {.stop = options.stop});
  const RankMap map(checked.schedule.workers, ranks.world());
  const auto pipeline =
      build_pipeline(checked.config, std::move(checked.schedule), map.workers_of(ranks.rank()), options.process);
  meet(ranks, map, checked, *pipeline);

  ShareKeeper share(run, checked, options.resume, *pipeline, options.files, ranks);
  FollowerSources sources = {
      checked.train_batches.get(), checked.val_batches.source.get(), {}, options.stop, options.abandon};
  sources.answer = [&](const std::string& question) {
    std::string answer = share.answer(question);
    sources.train = checked.train_batches.get();  // others if the question was to restore a checkpoint
    return answer;
  };
  TrainResult result;
  result.finished = carry_out_commands(*pipeline, ranks, map, sources) == RunEnd::Finished;
  return result;
}

}  // namespace gyre
