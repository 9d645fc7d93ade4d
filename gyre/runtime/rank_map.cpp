#include "gyre/runtime/rank_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "gyre/core/error.h"
#include "gyre/runtime/transport/link.h"
#include "gyre/schedule/reduction_chains.h"

namespace gyre {

RankMap::RankMap(int workers, int world) : workers_(workers), world_(world) {
  if (world <= workers) return;
  throw InputError(fmt::format(
      "{} processes were started, and the schedule has {} worker{}; start at most as many processes as there "
      "are workers",
      world, workers, workers == 1 ? "" : "s"));
}

WorkerRange RankMap::workers_of(int rank) const {
  const auto first = [&](int64_t r) { return static_cast<int>(r * workers_ / world_); };
  return {first(rank), first(rank + 1)};
}

int RankMap::rank_of(int worker) const {
  if (worker == kConductor) return 0;
  // The last whose first worker is not above: r * workers / world <= worker.
  return static_cast<int>((static_cast<int64_t>(worker + 1) * world_ - 1) / workers_);
}

std::set<std::pair<int, int>> linked_ranks(const Schedule& schedule, const RankMap& map) {
  std::set<std::pair<int, int>> pairs;
  const ReductionChains chains(schedule);
  const auto link = [&](int a, int b) {
    const auto [low, high] = std::minmax({map.rank_of(a), map.rank_of(b)});
    if (low != high) pairs.insert({low, high});
  };
  for (int stage = 0; stage < schedule.stages; ++stage) {
    for (const auto& owner : schedule.owner) {
      link(owner[stage], schedule.owner[0][0]);      // norms of the model
      link(owner[stage], schedule.owner[0][stage]);  // of the stage
    }
    for (int p = 0; p < schedule.pipelines; ++p) {
      const int worker = schedule.worker_of(p, stage);
      for (const auto& owner : schedule.owner) link(worker, owner[stage]);  // versions, sums
      if (!chains.sends_to_owners(p)) link(worker, chains.next_worker(p, stage));
      if (stage > 0) link(schedule.worker_of(p, stage - 1), worker);
    }
  }
  return pairs;
}

}  // namespace gyre
