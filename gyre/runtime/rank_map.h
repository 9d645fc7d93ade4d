// Which process runs which workers: consecutive ones, divided as evenly as possible, so that neighbours in the pipeline
// share a process where they can.
#pragma once

#include <set>
#include <utility>

#include "gyre/runtime/pipeline.h"

namespace gyre {

class RankMap {
 public:
  // Throws InputError if there are more processes than workers.
  RankMap(int workers, int world);
  WorkerRange workers_of(int rank) const;
  // The process of the worker; for kConductor, 0.
  int rank_of(int worker) const;

 private:
  int workers_, world_;
};

// The pairs of processes, lower rank first, that exchange messages in training or evaluation.
std::set<std::pair<int, int>> linked_ranks(const Pipeline& pipeline, const RankMap& map);

}  // namespace gyre
