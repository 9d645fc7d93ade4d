// How a schedule can be laid over the workers of a cluster.
#pragma once

#include <cstddef>
#include <vector>

#include "gyre/cluster/cluster.h"

namespace gyre {

struct Shape {
  size_t hosts = 0;  // the first ones of the cluster
  int workers = 1;   // of a replica
  int replicas = 1;
  bool by_stages = false;  // who is near: the replicas of a stage, or the workers of a pipeline
};

// The first 1, 2, 4, ... hosts and all of them, each with every number of replicas that leaves as few workers idle as
// it can; both orders of workers where they differ. Stages need as many layers.
std::vector<Shape> shapes_on(const Cluster& cluster, int layers);

}  // namespace gyre
