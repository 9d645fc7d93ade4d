// Shapes: the ways to divide a cluster's workers into replicas of a schedule.
#pragma once

#include <cstddef>
#include <vector>

#include "gyre/cluster/cluster.h"

namespace gyre {

struct Shape {
  size_t hosts = 0;  // uses the cluster's first `hosts` hosts
  int workers = 1;   // of a replica
  int replicas = 1;
  bool by_stages = false;  // which workers are neighbours: true: the replicas of a stage; false: a pipeline's workers
};

// The shapes on the first 1, 2, 4, ... hosts and on all of them. For each number of replicas, as many workers per
// replica as there are and as leave no process with idle workers, but at most `layers`, since every stage needs a
// layer. Both orders of workers if they differ.
std::vector<Shape> shapes_on(const Cluster& cluster, int layers);

}  // namespace gyre
