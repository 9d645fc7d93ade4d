// How a simulated run uses a network: for each class of links, what the busiest link carries.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gyre/cluster/worker_places.h"
#include "gyre/simulate/simulator.h"

namespace gyre {

struct ClassUse {
  std::string name;      // of the class; "process" for the free links inside one
  int64_t links = 0;     // directed links that carried messages
  int from = 0, to = 0;  // workers at the ends of the busiest link
  // Of the busiest link, per microbatch of the run: what microbatches send, and what updates add.
  double bytes_per_microbatch = 0, update_bytes_per_microbatch = 0;
  double busy_share = 0;  // share of the time in which it is busy
};

// "process" first, then the cluster's classes in their order, without those that carried nothing. The simulation must
// have kept its links.
std::vector<ClassUse> use_by_class(const Simulation& simulation, const WorkerPlaces& places);

nlohmann::ordered_json to_json(const ClassUse& use);
// As one line of text.
std::string describe(const ClassUse& use);

}  // namespace gyre
