// The machines of a run: hosts with their workers, and the costs of messages between workers by class of link. The
// file, cluster.toml, is described in docs/simulation.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/core/options.h"

namespace gyre {

inline constexpr int64_t kMaxClusterWorkers = 1 << 16;

// A class of links. A message takes latency + bytes / bandwidth.
struct LinkClass {
  std::string name;
  double latency = 0;
  double bandwidth = 0;  // must be given
  bool shared = false;

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("latency", self.latency, between(0, 1e6), "seconds that the smallest message takes, one way");
    visit("bandwidth", self.bandwidth, between(1, 1e18), "bytes per second from one worker to another, one way");
    visit("shared", self.shared, Range{},
          "whether the bandwidth is that of the host's port, which all its workers that send over links of this class "
          "share");
  }
  bool operator==(const LinkClass&) const = default;
};

struct Host {
  std::string name;
  int64_t workers = 0;  // must be given
  double speed = 1;
  std::string memory = {};

  // Bytes; 0: not given.
  int64_t memory_bytes() const;

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("name", self.name, Range{}, "the host's name");
    visit("workers", self.workers, between(1, kMaxClusterWorkers), "number of workers that it can run");
    visit("speed", self.speed, between(1e-6, 1e6),
          "speed of its workers, relative to the machine that the costs were measured on");
    visit("memory", self.memory, Range{}, "memory of each worker, such as \"16GiB\"; empty: no limit");
  }
  bool operator==(const Host&) const = default;
};

// Hosts with their own class of links between them, such as those of one rack.
struct HostGroup {
  std::string links;
  std::vector<std::string> hosts;

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("links", self.links, Range{}, "class of the links between these hosts");
    visit("hosts", self.hosts, Range{}, "names of the hosts");
  }
  bool operator==(const HostGroup&) const = default;
};

// Settings for all hosts.
struct ClusterSettings {
  int64_t workers_per_process = 1;
  std::string within_process = {};
  std::string within_host = {};
  std::string between_hosts = {};
  double snapshot_bandwidth = 1e9;

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("workers_per_process", self.workers_per_process, between(1, kMaxClusterWorkers),
          "consecutive workers that share a process; every host has a multiple of it");
    visit("within_process", self.within_process, Range{},
          "class of the links between workers of one process; empty: messages there take no time");
    visit("within_host", self.within_host, Range{}, "class of the links between processes of one host");
    visit("between_hosts", self.between_hosts, Range{}, "class of the links between hosts that share no group");
    visit("snapshot_bandwidth", self.snapshot_bandwidth, between(1, 1e18),
          "bytes per second at which a worker copies its state for a checkpoint");
  }
  bool operator==(const ClusterSettings&) const = default;
};

struct Cluster {
  ClusterSettings settings;
  std::vector<LinkClass> links;
  std::vector<Host> hosts;  // in the order in which launchers number their ranks
  std::vector<HostGroup> groups;

  int64_t workers() const;
  bool operator==(const Cluster&) const = default;
};

// Throws InputError with a line for each fault: what, in which file and line, and what to give instead.
Cluster parse_cluster(std::string_view toml, const std::string& origin);
Cluster load_cluster(const std::filesystem::path& path);
// parse_cluster(to_toml(c)) == c.
std::string to_toml(const Cluster& cluster);
// A copy with only the first `hosts` hosts.
Cluster first_hosts(const Cluster& cluster, size_t hosts);
// Every key with type, default and meaning, as Markdown.
std::string describe_cluster();

}  // namespace gyre
