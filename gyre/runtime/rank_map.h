// Which process runs which workers: consecutive ones, as evenly as it goes, so that neighbours in the pipeline share a
// process where they can.
#pragma once

#include <set>
#include <utility>

#include "gyre/runtime/pipeline.h"
#include "gyre/schedule/schedule.h"

namespace gyre {

class RankMap {
 public:
  // InputError for more processes than workers.
  RankMap(int workers, int world);
  WorkerRange workers_of(int rank) const;
  // The conductor's is 0.
  int rank_of(int worker) const;

 private:
  int workers_, world_;
};

// The pairs of processes, the lower first, between whose workers there are links under the schedule.
std::set<std::pair<int, int>> linked_ranks(const Schedule& schedule, const RankMap& map);

}  // namespace gyre
