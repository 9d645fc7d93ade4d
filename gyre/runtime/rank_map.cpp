#include "gyre/runtime/rank_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/runtime/worker_links.h"
#include "gyre/schedule/builders.h"

namespace gyre {

RankMap::RankMap(int workers, int world) : workers_(workers), world_(world) {
  if (world <= workers) return;
  throw InputError(
      fmt::format("{} processes were started, and the schedule has {}; start at most as many processes as there "
                  "are workers, or make more workers by [pipeline] stages or replicas",
                  world, counted(workers, "worker")));
}

WorkerRange RankMap::workers_of(int rank) const {
  const auto first = [&](int64_t r) { return static_cast<int>(r * workers_ / world_); };
  return {first(rank), first(rank + 1)};
}

int RankMap::rank_of(int worker) const {
  if (worker == kConductor) return 0;
  // The largest rank r whose first worker is not above this one: floor(r * workers / world) <= worker.
  return static_cast<int>((static_cast<int64_t>(worker + 1) * world_ - 1) / workers_);
}

std::set<std::pair<int, int>> linked_ranks(const Pipeline& pipeline, const RankMap& map) {
  std::set<std::pair<int, int>> pairs;
  for (const Schedule& schedule : {pipeline.schedule(), build_forward_only(pipeline.schedule())}) {
    for (const auto& [one, other] : linked_workers(schedule)) {
      const auto [low, high] = std::minmax({map.rank_of(one), map.rank_of(other)});
      if (low != high) pairs.insert({low, high});
    }
  }
  return pairs;
}

}  // namespace gyre
