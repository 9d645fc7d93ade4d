#include "gyre/schedule/delay.h"

#include <algorithm>
#include <tuple>

namespace gyre {

VersionTracker::VersionTracker(const Schedule& schedule, int worker)
    : schedule_(schedule),
      worker_(worker),
      versions_(static_cast<size_t>(schedule.pipelines * schedule.stages)),
      adopts_(versions_.size()) {
  const Program& program = schedule.programs[worker];
  for (const auto* actions : {&program.prologue, &program.period}) {
    for (const Action& action : *actions) {
      if (action.kind == ActionKind::Adopt) adopts_[index(action.pipeline, action.stage)] = true;
    }
  }
}

int64_t VersionTracker::track(const Action& action) {
  const int64_t found = versions_[index(action.pipeline, action.stage)];
  if (action.kind == ActionKind::Adopt) {
    ++versions_[index(action.pipeline, action.stage)];
  } else if (action.kind == ActionKind::Update) {
    // The owner's update is at once the new version of the replicas beside it, unless they wait for an adopt.
    for (int pipeline = 0; pipeline < schedule_.pipelines; ++pipeline) {
      const bool here = schedule_.worker_of(pipeline, action.stage) == worker_;
      if (here && !adopts_[index(pipeline, action.stage)]) ++versions_[index(pipeline, action.stage)];
    }
  }
  return found;
}

DelayAnalysis analyse_delays(const Schedule& schedule, int64_t microbatches) {
  DelayAnalysis analysis;
  analysis.delay.resize(schedule.stages);
  analysis.mismatch.resize(schedule.stages);
  for (int worker = 0; worker < schedule.workers; ++worker) {
    VersionTracker tracker(schedule, worker);
    std::map<std::tuple<int, int, int64_t>, int64_t> forward_versions;  // of microbatches in flight
    for (ProgramCursor cursor(schedule, worker, microbatches); cursor.peek(); cursor.advance()) {
      const Action action = *cursor.peek();
      const int64_t version = tracker.track(action);
      const std::tuple key{action.pipeline, action.stage, action.microbatch};
      if (action.kind == ActionKind::Forward && !schedule.forward_only) forward_versions.emplace(key, version);
      if (action.kind != ActionKind::Backward && action.kind != ActionKind::BackwardInput) continue;
      const auto forward = forward_versions.find(key);
      if (forward == forward_versions.end()) continue;  // not a valid schedule; validate() says so
      const int64_t delay = delay_of(schedule, action.microbatch, forward->second);
      const int64_t mismatch = version - forward->second;
      ++analysis.delay[action.stage][delay];
      ++analysis.mismatch[action.stage][mismatch];
      analysis.max_delay = std::max(analysis.max_delay, delay);
      analysis.max_mismatch = std::max(analysis.max_mismatch, mismatch);
      forward_versions.erase(forward);
    }
  }
  return analysis;
}

}  // namespace gyre
