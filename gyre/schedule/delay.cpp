#include "gyre/schedule/delay.h"

#include <algorithm>

#include "gyre/schedule/ring_map.h"

namespace gyre {

VersionTracker::VersionTracker(const Schedule& schedule, const ReplicaNumbers& replicas, int worker)
    : schedule_(schedule),
      replicas_(replicas),
      worker_(worker),
      first_(replicas.first(worker)),
      versions_(replicas.count(worker)),
      adopts_(versions_.size()) {
  const Program& program = schedule.programs[worker];
  for (const auto* actions : {&program.prologue, &program.period}) {
    for (const Action& action : *actions) {
      if (action.kind == ActionKind::Adopt) adopts_[index(action)] = true;
    }
  }
}

int64_t VersionTracker::track(const Action& action) {
  if (action.kind == ActionKind::Update) {
    // The owner's update is at once the new version of the replicas beside it, unless they wait for an adopt.
    int64_t found = 0;
    for (int pipeline = 0; pipeline < schedule_.pipelines; ++pipeline) {
      if (schedule_.worker_of(pipeline, action.stage) != worker_) continue;
      const size_t replica = replicas_.of(pipeline, action.stage) - first_;
      if (pipeline == action.pipeline) found = versions_[replica];
      if (!adopts_[replica]) ++versions_[replica];
    }
    return found;
  }
  int64_t& version = versions_[index(action)];
  return action.kind == ActionKind::Adopt ? version++ : version;
}

DelayAnalysis analyse_delays(const Schedule& schedule, int64_t microbatches) {
  DelayAnalysis analysis;
  analysis.delay.resize(schedule.stages);
  analysis.mismatch.resize(schedule.stages);
  const ReplicaNumbers replicas(schedule);
  for (int worker = 0; worker < schedule.workers; ++worker) {
    VersionTracker tracker(schedule, replicas, worker);
    RingMap<int64_t> forward_versions(replicas.count(worker));  // of microbatches in flight
    for (ProgramCursor cursor(schedule, worker, microbatches); cursor.peek(); cursor.advance()) {
      const Action action = *cursor.peek();
      const int64_t version = tracker.track(action);
      if (action.is_per_window()) continue;
      const size_t place = replicas.of(action.pipeline, action.stage) - replicas.first(worker);
      const int64_t number = action.microbatch / schedule.pipelines;
      if (action.kind == ActionKind::Forward && !schedule.forward_only) forward_versions.at(place, number) = version;
      if (action.kind != ActionKind::Backward && action.kind != ActionKind::BackwardInput) continue;
      const int64_t* found = forward_versions.find(place, number);
      if (found == nullptr) continue;  // not a valid schedule; validate() says so
      const int64_t read = *found;
      forward_versions.erase(place, number);
      const int64_t delay = delay_of(schedule, action.microbatch, read);
      const int64_t mismatch = version - read;
      ++analysis.delay[action.stage][delay];
      ++analysis.mismatch[action.stage][mismatch];
      analysis.max_delay = std::max(analysis.max_delay, delay);
      analysis.max_mismatch = std::max(analysis.max_mismatch, mismatch);
    }
  }
  return analysis;
}

LongestDelays longest_delays(const Schedule& schedule) {
  const DelayAnalysis analysis = analyse_delays(schedule, representative_microbatches(schedule));
  const auto longest = [](const std::vector<std::map<int64_t, int64_t>>& histograms) {
    std::vector<int64_t> result;
    for (const auto& histogram : histograms) result.push_back(histogram.empty() ? 0 : histogram.rbegin()->first);
    return result;
  };
  return {longest(analysis.delay), longest(analysis.mismatch)};
}

std::vector<double> mean_delays(const Schedule& schedule) {
  // What one more repetition adds: those before it fill the pipelines.
  const int64_t filling = representative_microbatches(schedule);
  const DelayAnalysis before = analyse_delays(schedule, filling);
  const DelayAnalysis after = analyse_delays(schedule, filling + schedule.shift);
  const auto sum = [](const std::map<int64_t, int64_t>& histogram) {
    int64_t total = 0;
    for (const auto& [delay, count] : histogram) total += delay * count;
    return total;
  };
  std::vector<double> means;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    const int64_t added = sum(after.delay[stage]) - sum(before.delay[stage]);
    means.push_back(static_cast<double>(added) / static_cast<double>(schedule.shift));
  }
  return means;
}

}  // namespace gyre
