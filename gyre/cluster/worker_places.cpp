#include "gyre/cluster/worker_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "gyre/core/error.h"
#include "gyre/core/text.h"

namespace gyre {
namespace {

const LinkClass* find_class(const Cluster& cluster, const std::string& name) {
  const auto found = std::ranges::find(cluster.links, name, &LinkClass::name);
  return found == cluster.links.end() ? nullptr : &*found;
}

}  // namespace

WorkerPlaces::WorkerPlaces(const Cluster& cluster, int workers)
    : cluster_(cluster),
      within_process_(find_class(cluster, cluster.settings.within_process)),
      within_host_(find_class(cluster, cluster.settings.within_host)),
      between_hosts_(find_class(cluster, cluster.settings.between_hosts)),
      groups_of_(cluster.hosts.size()) {
  const int64_t room = cluster.workers();
  if (workers > room) {
    throw InputError(fmt::format("the schedule has {} workers, and the {} of the cluster can run {}", workers,
                                 counted(std::ssize(cluster.hosts), "host"), room));
  }
  const int64_t together = cluster.settings.workers_per_process;
  if (workers % together != 0) {
    throw InputError(
        fmt::format("the schedule has {}, which is no multiple of the cluster's "
                    "workers_per_process, {}",
                    counted(workers, "worker"), together));
  }
  for (size_t host = 0; host < cluster.hosts.size(); ++host) {
    const auto left = static_cast<int64_t>(workers) - std::ssize(host_);
    host_.insert(host_.end(), static_cast<size_t>(std::min(left, cluster.hosts[host].workers)), static_cast<int>(host));
  }
  std::map<std::string_view, size_t> numbers;
  for (size_t host = 0; host < cluster.hosts.size(); ++host) numbers[cluster.hosts[host].name] = host;
  for (const HostGroup& group : cluster.groups) {
    for (const std::string& name : group.hosts) groups_of_[numbers.at(name)].push_back(group_links_.size());
    group_links_.push_back(find_class(cluster, group.links));
  }
}

const LinkClass* WorkerPlaces::link(int from, int to) const {
  if (host_of(from) != host_of(to)) return between(host_of(from), host_of(to));
  const int64_t together = cluster_.settings.workers_per_process;
  return from / together == to / together ? within_process_ : within_host_;
}

// The first group that has both hosts decides.
const LinkClass* WorkerPlaces::between(int from_host, int to_host) const {
  const auto& theirs = groups_of_[static_cast<size_t>(to_host)];
  for (const size_t group : groups_of_[static_cast<size_t>(from_host)]) {
    if (std::ranges::binary_search(theirs, group)) return group_links_[group];
  }
  return between_hosts_;
}

int WorkerPlaces::workers_on(int host) const {
  return static_cast<int>(std::ranges::count(host_, host));
}

}  // namespace gyre
