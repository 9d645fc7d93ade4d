// What a simulated run needs of a network: of each class of links, what the busiest carries.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gyre/cluster/worker_places.h"
#include "gyre/simulate/simulator.h"

namespace gyre {

struct ClassUse {
  std::string name;      // of the class; "process" for the free links within one
  int64_t links = 0;     // over which messages went, one way each
  int from = 0, to = 0;  // workers at the ends of the busiest
  // Of the busiest, for each microbatch that its pipelines do: what follows from microbatches, and what updates add.
  double bytes_per_microbatch = 0, update_bytes_per_microbatch = 0;
  double busy_share = 0;  // of the time
};

// In the order of the cluster's classes. The simulation kept its links.
std::vector<ClassUse> use_by_class(const Simulation& simulation, const WorkerPlaces& places);

nlohmann::ordered_json to_json(const ClassUse& use);
// One line.
std::string describe(const ClassUse& use);

}  // namespace gyre
