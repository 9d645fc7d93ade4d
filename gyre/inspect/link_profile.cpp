#include "gyre/inspect/link_profile.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/timing.h"
#include "gyre/schedule/reduction_chains.h"

namespace gyre {
namespace {

constexpr double kSilenceSeconds = 60;
constexpr int64_t kSegment = 1;
constexpr int64_t kPartBytes = 4 * kReductionPart;                   // the size of the parts that replicas send
constexpr int64_t kPing = 0, kPart = 1, kLastPart = 2, kEnough = 3;  // numbers of messages
constexpr int64_t kCapacity = 32;

at::Tensor bytes_to_send(int64_t bytes) {
  return at::zeros({bytes}, at::kByte);
}

// A link in each direction to one other process.
class Pair {
 public:
  Pair(Ranks& ranks, int other) : ranks_(ranks), watch_(ranks, bell_, {}) {
    const int low = std::min(ranks.rank(), other);
    const LinkId up{LinkKind::Activation, 0, low}, down{LinkKind::Gradient, 0, low};
    const bool is_low = ranks.rank() == low;
    sender_ = ranks.sender(other, kSegment, is_low ? up : down, kCapacity, bell_);
    receiver_ = ranks.receiver(other, kSegment, is_low ? down : up, kCapacity, bell_);
  }

  void send(Message message) {
    wait_until([&] { return sender_->has_room(); });
    sender_->send(std::move(message));
  }
  Message receive() {
    std::optional<Message> message;
    wait_until([&] { return (message = receiver_->try_receive()).has_value(); });
    return std::move(*message);
  }

 private:
  template <typename Condition>
  void wait_until(Condition&& holds) {
    for (;;) {
      const uint64_t ticket = bell_.ticket();
      if (holds()) return;
      ranks_.raise_failure();
      bell_.wait(ticket);
    }
  }

  Ranks& ranks_;
  Doorbell bell_;
  Ranks::Watch watch_;
  std::unique_ptr<Sender> sender_;
  std::unique_ptr<Receiver> receiver_;
};

// The other side of measure(): replies to every ping and to the last part of every stream, until kEnough.
void answer(Pair& pair) {
  for (;;) {
    const Message message = pair.receive();
    if (message.number == kEnough) return;
    if (message.number != kPart) pair.send({message.number, {}, {}, {}});
  }
}

struct LinkMeasurement {
  double latency = 0, bandwidth = 0;
};

// Sends small messages back and forth, then streams of large ones.
LinkMeasurement measure(Pair& pair, const LinkProfileOptions& options) {
  std::vector<double> seconds;
  const int warm_up = options.pings / 10 + 1;
  for (int i = -warm_up; i < options.pings; ++i) {
    const auto started = std::chrono::steady_clock::now();
    pair.send({kPing, {}, {1.0}, {}});
    pair.receive();
    if (i >= 0) seconds.push_back(seconds_since(started) / 2);
  }
  LinkMeasurement link;
  link.latency = median(std::move(seconds));
  const at::Tensor part = bytes_to_send(kPartBytes);
  const int64_t parts = std::max<int64_t>(1, options.stream_bytes / kPartBytes);
  std::vector<double> bandwidths;
  for (int i = -1; i < options.streams; ++i) {
    const auto started = std::chrono::steady_clock::now();
    for (int64_t n = 1; n <= parts; ++n) pair.send({n < parts ? kPart : kLastPart, {part}, {}, {}});
    pair.receive();
    const double taken = std::max(1e-9, seconds_since(started) - 2 * link.latency);
    if (i >= 0) bandwidths.push_back(static_cast<double>(parts * kPartBytes) / taken);
  }
  link.bandwidth = median(std::move(bandwidths));
  pair.send({kEnough, {}, {}, {}});
  return link;
}

// Bytes a second at which this process copies memory. All processes do so at the same time, as for a checkpoint.
double copy_bandwidth(const LinkProfileOptions& options) {
  const at::Tensor from = bytes_to_send(options.stream_bytes);
  std::vector<double> bandwidths;
  for (int i = -1; i < options.streams; ++i) {
    const auto started = std::chrono::steady_clock::now();
    const at::Tensor copy = from.clone();
    if (i >= 0) bandwidths.push_back(static_cast<double>(options.stream_bytes) / seconds_since(started));
  }
  return median(std::move(bandwidths));
}

struct RankProfile {
  std::string host;
  double memory = 0, copy_bandwidth = 0;
  LinkMeasurement to_next;  // of all ranks but the last
};

Message to_message(const RankProfile& profile) {
  const auto& [latency, bandwidth] = profile.to_next;
  return {0, {to_tensor(profile.host)}, {profile.memory, profile.copy_bandwidth, latency, bandwidth}, {}};
}
RankProfile to_profile(const Message& message) {
  const auto& values = message.values;
  return {to_text(message.tensors.at(0)), values.at(0), values.at(1), {values.at(2), values.at(3)}};
}

// To three digits: measurements are no more exact.
double rounded(double value) {
  return std::stod(fmt::format("{:.3g}", value));
}

// The hosts with the numbers of their workers, in the order of ranks.
std::vector<Host> hosts_of(const std::vector<RankProfile>& profiles) {
  std::vector<Host> hosts;
  std::map<std::string, double> memory;
  for (size_t rank = 0; rank < profiles.size(); ++rank) {
    const std::string& name = profiles[rank].host;
    if (hosts.empty() || hosts.back().name != name) {
      if (std::ranges::find(hosts, name, &Host::name) != hosts.end()) {
        throw InputError(fmt::format("rank {} is on {}, and so are ranks before rank {}: start ranks host by host",
                                     rank, name, rank - 1));
      }
      hosts.push_back({.name = name});
    }
    ++hosts.back().workers;
    memory[name] = std::max(memory[name], profiles[rank].memory);
  }
  for (Host& host : hosts) {
    const double each = memory[host.name] / static_cast<double>(host.workers);
    if (each >= 0x1p20) host.memory = fmt::format("{}MiB", static_cast<int64_t>(each / 0x1p20));
  }
  return hosts;
}

// Adds a class with the medians of `pairs`, if there are any. Returns its name, or "".
std::string add_class(const std::string& name, bool shared, const std::vector<LinkMeasurement>& pairs,
                      Cluster& cluster) {
  if (pairs.empty()) return "";
  std::vector<double> latencies, bandwidths;
  for (const LinkMeasurement& pair : pairs) {
    latencies.push_back(pair.latency);
    bandwidths.push_back(pair.bandwidth);
  }
  cluster.links.push_back({name, rounded(median(latencies)), rounded(median(bandwidths)), shared});
  return name;
}

Cluster cluster_of(const std::vector<RankProfile>& profiles) {
  Cluster cluster;
  cluster.hosts = hosts_of(profiles);
  std::vector<LinkMeasurement> within, between;
  for (size_t rank = 0; rank + 1 < profiles.size(); ++rank) {
    (profiles[rank].host == profiles[rank + 1].host ? within : between).push_back(profiles[rank].to_next);
  }
  cluster.settings.within_host = add_class("host", false, within, cluster);
  cluster.settings.between_hosts = add_class("network", true, between, cluster);
  double slowest = profiles[0].copy_bandwidth;
  for (const RankProfile& profile : profiles) slowest = std::min(slowest, profile.copy_bandwidth);
  cluster.settings.snapshot_bandwidth = rounded(slowest);
  return cluster;
}

LinkId profile_of(int rank) {
  return LinkId::of_rank(LinkKind::Answer, rank);
}

}  // namespace

std::optional<Cluster> profile_links(Ranks& ranks, const LinkProfileOptions& options) {
  const int own_rank = ranks.rank(), last = ranks.world() - 1;
  std::set<std::pair<int, int>> neighbours;
  for (int rank = 0; rank < last; ++rank) neighbours.insert({rank, rank + 1});
  ranks.meet({{"build", file_checksum("/proc/self/exe")}}, neighbours, kSilenceSeconds);

  RankProfile own{options.host, options.memory, copy_bandwidth(options), {}};
  // One pair at a time: each rank answers the one before it, and measures when that has ended.
  if (own_rank > 0) {
    Pair before(ranks, own_rank - 1);
    answer(before);
  }
  if (own_rank < last) {
    Pair next(ranks, own_rank + 1);
    own.to_next = measure(next, options);
  }
  Doorbell bell;
  if (own_rank > 0) {
    const auto to_rank_0 = ranks.sender(0, 0, profile_of(own_rank), 1, bell);
    to_rank_0->send(to_message(own));
    return std::nullopt;
  }
  std::vector<RankProfile> profiles = {own};
  for (int rank = 1; rank <= last; ++rank) {
    const auto from_rank = ranks.receiver(rank, 0, profile_of(rank), 1, bell);
    profiles.push_back(to_profile(wait_for(ranks, *from_rank, bell)));
  }
  return cluster_of(profiles);
}

}  // namespace gyre
