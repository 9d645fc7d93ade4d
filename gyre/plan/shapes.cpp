#include "gyre/plan/shapes.h"

#include <algorithm>
#include <cstdint>

namespace gyre {
namespace {

std::vector<size_t> numbers_of_hosts(size_t all) {
  std::vector<size_t> numbers;
  for (size_t hosts = 1; hosts < all; hosts *= 2) numbers.push_back(hosts);
  numbers.push_back(all);
  return numbers;
}

}  // namespace

std::vector<Shape> shapes_on(const Cluster& cluster, int layers) {
  std::vector<Shape> shapes;
  int64_t fewer = 0;  // workers of the hosts before
  for (const size_t hosts : numbers_of_hosts(cluster.hosts.size())) {
    const int64_t all = first_hosts(cluster, hosts).workers();
    const bool all_alike = hosts == 1 && cluster.settings.workers_per_process == 1;
    int64_t replicas_before = 0;
    for (int64_t workers = std::min<int64_t>(all, layers); workers >= 1; --workers) {
      const int64_t replicas = all / workers;
      if (replicas == replicas_before) continue;  // as many with fewer workers each
      replicas_before = replicas;
      const int64_t used = workers * replicas;
      // On fewer hosts it is another shape.
      if (used <= fewer || used % cluster.settings.workers_per_process != 0) continue;
      Shape shape{hosts, static_cast<int>(workers), static_cast<int>(replicas), false};
      shapes.push_back(shape);
      if (workers == 1 || replicas == 1 || all_alike) continue;
      shape.by_stages = true;
      shapes.push_back(shape);
    }
    fewer = all;
  }
  return shapes;
}

}  // namespace gyre
