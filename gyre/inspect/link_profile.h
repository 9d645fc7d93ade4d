// Measures the links between the processes of a run, in the way that training uses them, for the planner and the
// simulator.
#pragma once

#include <optional>
#include <string>

#include "gyre/cluster/cluster.h"
#include "gyre/runtime/ranks/ranks.h"

namespace gyre {

struct LinkProfileOptions {
  std::string host;   // of this process
  double memory = 0;  // bytes that this host has for its processes; 0: not known
  int pings = 1000;   // round trips of small messages; their median counts
  int streams = 5;    // streams of large messages; their median counts
  int64_t stream_bytes = int64_t{64} << 20;
};

// All processes call it before they have met. Returns the cluster that they make on rank 0, each process as one worker;
// empty elsewhere. Pairs of neighbours are measured, one after the other, and a class of links gets the median of its
// pairs. Throws InputError on rank 0 if ranks are not numbered host by host or a process does not come, and otherwise
// as Ranks::meet.
std::optional<Cluster> profile_links(Ranks& ranks, const LinkProfileOptions& options);

}  // namespace gyre
