// Places the workers 0, 1, ... of a schedule on the hosts of a cluster in order, as many as each host can run. The
// runtime does the same, since consecutive workers share a process and launchers number the processes host by host.
#pragma once

#include <string>
#include <vector>

#include "gyre/cluster/cluster.h"

namespace gyre {

class WorkerPlaces {
 public:
  // Throws InputError for more workers than the cluster can run, or not a multiple of workers_per_process. The cluster
  // must outlive this.
  WorkerPlaces(const Cluster& cluster, int workers);

  int host_of(int worker) const { return host_[static_cast<size_t>(worker)]; }
  double speed(int worker) const { return host(worker).speed; }
  int64_t memory_bytes(int worker) const { return host(worker).memory_bytes(); }
  // The class of the link from one worker to another; null for a free one within a process.
  const LinkClass* link(int from, int to) const;
  // How many hosts have workers; these are the first ones.
  int hosts() const { return host_.empty() ? 0 : host_.back() + 1; }
  int workers_on(int host) const;
  const Cluster& cluster() const { return cluster_; }

 private:
  const Host& host(int worker) const { return cluster_.hosts[static_cast<size_t>(host_of(worker))]; }
  const LinkClass* between(int from_host, int to_host) const;

  const Cluster& cluster_;
  std::vector<int> host_;  // [worker]
  const LinkClass* within_process_ = nullptr;
  const LinkClass* within_host_ = nullptr;
  const LinkClass* between_hosts_ = nullptr;
  std::vector<const LinkClass*> group_links_;   // [group]
  std::vector<std::vector<size_t>> groups_of_;  // [host]: ascending
};

}  // namespace gyre
