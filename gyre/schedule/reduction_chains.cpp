#include "gyre/schedule/reduction_chains.h"

#include <algorithm>
#include <numeric>

namespace gyre {

std::vector<int> pipelines_side_by_side(const Schedule& schedule) {
  std::vector<int> first(static_cast<size_t>(schedule.pipelines));
  // [worker]: the first pipeline of the latest group that uses it.
  std::vector<int> taken(static_cast<size_t>(schedule.workers), -1);
  int beside = 0;
  for (int pipeline = 0; pipeline < schedule.pipelines; ++pipeline) {
    const std::vector<int>& workers = schedule.placement[pipeline];
    const auto is_taken = [&](int worker) { return taken[static_cast<size_t>(worker)] == beside; };
    if (std::any_of(workers.begin(), workers.end(), is_taken)) beside = pipeline;
    for (const int worker : workers) taken[static_cast<size_t>(worker)] = beside;
    first[static_cast<size_t>(pipeline)] = beside;
  }
  return first;
}

ReductionChains::ReductionChains(const Schedule& schedule) : schedule_(schedule) {
  if (schedule.window < schedule.pipelines) {
    // Some pipelines have nothing to add to a window, so each one sends by itself.
    last_.resize(static_cast<size_t>(schedule.pipelines));
    std::iota(last_.begin(), last_.end(), 0);
  } else {
    last_ = pipelines_side_by_side(schedule);
  }
  end_.resize(last_.size());
  for (int pipeline = 0; pipeline < schedule.pipelines; ++pipeline) {
    end_[static_cast<size_t>(last(pipeline))] = pipeline + 1;
  }
}

int ReductionChains::end(int pipeline) const {
  return end_[static_cast<size_t>(last(pipeline))];
}

std::optional<int> ReductionChains::previous(int pipeline) const {
  if (!sends_to_owners(pipeline)) return pipeline == last(pipeline) + 1 ? std::nullopt : std::optional(pipeline - 1);
  return end(pipeline) == pipeline + 1 ? std::nullopt : std::optional(end(pipeline) - 1);
}

int ReductionChains::next_worker(int pipeline, int stage) const {
  const int next = pipeline + 1 < end(pipeline) ? pipeline + 1 : last(pipeline);
  return schedule_.worker_of(next, stage);
}

int64_t ReductionChains::passed_on_by(int pipeline) const {
  return sends_to_owners(pipeline) ? 0 : end(pipeline) - 1 - pipeline;
}

}  // namespace gyre
