// Which process runs which workers: consecutive ones, as evenly as it goes, so that neighbours in the pipeline share a
// process where they can.
#pragma once

#include <set>
#include <utility>

#include "gyre/runtime/pipeline.h"

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

// The pairs of processes, the lower first, that a message of training or of evaluation goes between.
std::set<std::pair<int, int>> linked_ranks(const Pipeline& pipeline, const RankMap& map);

}  // namespace gyre
