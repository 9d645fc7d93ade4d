#include "gyre/schedule/delay.h"

#include <algorithm>
#include <optional>

#include "gyre/schedule/ring_map.h"

namespace gyre {

VersionTracker::VersionTracker(const Schedule& schedule, const ReplicaNumbers& replicas, int worker)
    : replicas_(replicas),
      worker_(worker),
      first_(replicas.first(worker)),
      versions_(replicas.count(worker)),
      adopts_(versions_.size()) {
  for (const auto& [pipeline, stage] : adopting_replicas(schedule, worker)) {
    adopts_[replicas.of(pipeline, stage) - first_] = true;
  }
}

int64_t VersionTracker::track(const Action& action) {
  if (action.kind == ActionKind::Update) {
    const bool is_here = replicas_.worker(action.pipeline, action.stage) == worker_;
    const int64_t found = is_here ? versions_[index(action)] : 0;
    // Replicas of the stage on this worker take the new version at once, unless they wait for an Adopt.
    for (size_t i = 0; i < versions_.size(); ++i) {
      if (replicas_.stage(first_ + i) == action.stage && !adopts_[i]) ++versions_[i];
    }
    return found;
  }
  int64_t& version = versions_[index(action)];
  return action.kind == ActionKind::Adopt ? version++ : version;
}

namespace {

struct Delays {
  int64_t delay, mismatch;
};

// Follows one worker's program action by action, as VersionTracker does.
class DelayTracker {
 public:
  DelayTracker(const Schedule& schedule, const ReplicaNumbers& replicas, int worker)
      : schedule_(schedule),
        replicas_(replicas),
        first_(replicas.first(worker)),
        versions_(schedule, replicas, worker),
        read_(replicas.count(worker)) {}

  // Returns the delays of the action's microbatch at its backward, nullopt at all other actions.
  std::optional<Delays> track(const Action& action) {
    const int64_t version = versions_.track(action);
    if (action.is_per_window() || action.kind == ActionKind::BackwardWeights) return std::nullopt;
    const size_t place = replicas_.of(action.pipeline, action.stage) - first_;
    const int64_t number = action.microbatch / schedule_.pipelines;
    if (action.kind == ActionKind::Forward) {
      if (!schedule_.forward_only) read_.at(place, number) = version;
      return std::nullopt;
    }
    const int64_t* read = read_.find(place, number);
    if (read == nullptr) return std::nullopt;  // not a valid schedule; validate() says so
    const Delays delays{delay_of(schedule_, action.microbatch, *read), version - *read};
    read_.erase(place, number);
    return delays;
  }

 private:
  const Schedule& schedule_;
  const ReplicaNumbers& replicas_;
  size_t first_;  // the worker's first replica
  VersionTracker versions_;
  RingMap<int64_t> read_;  // by microbatch in flight: the version that its forward read
};

}  // namespace

DelayAnalysis analyse_delays(const Schedule& schedule, int64_t microbatches) {
  DelayAnalysis analysis;
  analysis.delay.resize(schedule.stages);
  analysis.mismatch.resize(schedule.stages);
  const ReplicaNumbers replicas(schedule);
  for (int worker = 0; worker < schedule.workers; ++worker) {
    DelayTracker tracker(schedule, replicas, worker);
    for (ProgramCursor cursor(schedule, worker, microbatches); cursor.peek(); cursor.advance()) {
      const auto found = tracker.track(*cursor.peek());
      if (!found) continue;
      const int stage = cursor.peek()->stage;
      ++analysis.delay[stage][found->delay];
      ++analysis.mismatch[stage][found->mismatch];
      analysis.max_delay = std::max(analysis.max_delay, found->delay);
      analysis.max_mismatch = std::max(analysis.max_mismatch, found->mismatch);
    }
  }
  return analysis;
}

LongestDelays longest_delays(const Schedule& schedule) {
  const auto stages = static_cast<size_t>(schedule.stages);
  LongestDelays longest{std::vector<int64_t>(stages), std::vector<int64_t>(stages)};
  const ReplicaNumbers replicas(schedule);
  for (int worker = 0; worker < schedule.workers; ++worker) {
    DelayTracker tracker(schedule, replicas, worker);
    int64_t left = representative_actions(schedule, worker);
    for (ProgramCursor cursor(schedule, worker); left > 0; --left, cursor.advance()) {
      const auto found = tracker.track(*cursor.peek());
      if (!found) continue;
      int64_t& delay = longest.delay[cursor.peek()->stage];
      int64_t& mismatch = longest.mismatch[cursor.peek()->stage];
      delay = std::max(delay, found->delay);
      mismatch = std::max(mismatch, found->mismatch);
    }
  }
  return longest;
}

std::vector<int64_t> forecast_steps(const Schedule& schedule, WeightPolicy weights) {
  if (weights == WeightPolicy::Predict) return longest_delays(schedule).delay;
  if (weights == WeightPolicy::Corrected) return longest_delays(schedule).mismatch;
  return std::vector<int64_t>(static_cast<size_t>(schedule.stages));
}

std::vector<double> mean_delays(const Schedule& schedule) {
  // The mean over one more repetition, after enough of them to fill the pipelines.
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
