#include "gyre/plan/shapes.h"

#include <algorithm>
#include <cstdint>

namespace gyre {
namespace {

std::vector<size_t> host_counts(size_t total) {
  std::vector<size_t> counts;
  for (size_t hosts = 1; hosts < total; hosts *= 2) counts.push_back(hosts);
  counts.push_back(total);
  return counts;
}

}  // namespace

std::vector<Shape> shapes_on(const Cluster& cluster, int layers) {
  std::vector<Shape> shapes;
  int64_t workers_before = 0;  // workers of the previous, smaller number of hosts
  for (const size_t hosts : host_counts(cluster.hosts.size())) {
    const int64_t total = first_hosts(cluster, hosts).workers();
    const bool same_order = hosts == 1 && cluster.settings.workers_per_process == 1;
    int64_t replicas_before = 0;
    for (int64_t workers = std::min<int64_t>(total, layers); workers >= 1; --workers) {
      const int64_t replicas = total / workers;
      if (replicas == replicas_before) continue;  // as many replicas, but with fewer workers each
      const int64_t used = workers * replicas;
      // Skips what fits on fewer hosts, and what leaves a process with idle workers.
      if (used <= workers_before || used % cluster.settings.workers_per_process != 0) continue;
      replicas_before = replicas;
      Shape shape{hosts, static_cast<int>(workers), static_cast<int>(replicas), false};
      shapes.push_back(shape);
      if (workers == 1 || replicas == 1 || same_order) continue;
      shape.by_stages = true;
      shapes.push_back(shape);
    }
    workers_before = total;
  }
  return shapes;
}

}  // namespace gyre
