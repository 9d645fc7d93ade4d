#include "gyre/schedule/worker_order.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace gyre {
namespace {

// [worker]: the replica that it belongs to. A worker that hosts no stage but updates shard s belongs to replica s mod
// `replicas`.
std::vector<int> replicas_of(const Schedule& schedule, int replicas) {
  std::vector<int> replica(static_cast<size_t>(schedule.workers));
  for (int shard = 0; shard < schedule.shards(); ++shard) {
    for (const int worker : schedule.owner[static_cast<size_t>(shard)]) {
      replica[static_cast<size_t>(worker)] = shard % replicas;
    }
  }
  for (int pipeline = 0; pipeline < schedule.pipelines; ++pipeline) {
    for (const int worker : schedule.placement[static_cast<size_t>(pipeline)]) {
      replica[static_cast<size_t>(worker)] = pipeline % replicas;
    }
  }
  return replica;
}

}  // namespace

Schedule numbered_by_stages(Schedule schedule, int replicas) {
  if (replicas == 1) return schedule;
  const std::vector<int> replica = replicas_of(schedule, replicas);
  std::vector<std::pair<int, int>> places;  // [worker]: its index within its replica, and the replica
  std::vector<int> seen(static_cast<size_t>(replicas));
  for (const int r : replica) places.emplace_back(seen[static_cast<size_t>(r)]++, r);
  std::vector<int> order(places.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int worker) { return places[static_cast<size_t>(worker)]; });

  std::vector<int> number(order.size());
  std::vector<Program> programs;
  for (const int worker : order) {
    number[static_cast<size_t>(worker)] = static_cast<int>(programs.size());
    programs.push_back(std::move(schedule.programs[static_cast<size_t>(worker)]));
  }
  schedule.programs = std::move(programs);
  for (auto* table : {&schedule.placement, &schedule.owner}) {
    for (auto& workers : *table) {
      for (int& worker : workers) worker = number[static_cast<size_t>(worker)];
    }
  }
  return schedule;
}

}  // namespace gyre
