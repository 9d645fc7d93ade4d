// Measures the links between the processes of a run, as training uses them: for the planner and the simulator.
#pragma once

#include <optional>
#include <string>

#include "gyre/cluster/cluster.h"
#include "gyre/runtime/ranks/ranks.h"

namespace gyre {

struct LinkProfileOptions {
  std::string host;   // this process's
  double memory = 0;  // bytes that this host has for its processes; 0: not known
  int pings = 1000;   // small messages there and back, of which the median counts
  int streams = 5;    // times that a stream of large messages is sent, of which the median counts
  int64_t stream_bytes = int64_t{64} << 20;
};

// All processes call it, and have not met yet. On rank 0 the cluster that they make, each a worker; nothing elsewhere.
// Measured are the pairs of neighbours, one after the other; a class of links has the median of its pairs.
// Errors: InputError on rank 0 where ranks are not numbered host by host, or a process does not come; as Ranks::meet.
std::optional<Cluster> profile_links(Ranks& ranks, const LinkProfileOptions& options);

}  // namespace gyre
