// Clusters: an accepted file is written and read back the same, and every worker has a place.
#include "gyre/cluster/cluster.h"

#include <algorithm>

#include "fuzz/targets.h"
#include "gyre/cluster/worker_places.h"

namespace gyre::fuzz {

void cluster(std::string_view input) {
  const auto cluster = accepted([&] { return parse_cluster(input, "input"); });
  if (!cluster) return;
  require(parse_cluster(to_toml(*cluster), "written") == *cluster, "a cluster comes back the same");
  const auto workers = static_cast<int>(cluster->workers());
  const WorkerPlaces places(*cluster, workers);
  require(places.host_of(workers - 1) + 1 == static_cast<int>(cluster->hosts.size()), "all hosts have workers");
  for (int worker = 1; worker < std::min(workers, 100); ++worker) places.link(worker - 1, worker);
}

}  // namespace gyre::fuzz
