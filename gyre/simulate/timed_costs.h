// The cost model in the form that the timeline uses: how long an action takes on its worker, and when a message
// arrives, with a queue for each directed link, or for each port that links share. Either all links are alike, or they
// are those between the workers' places on a cluster. All shards of a stage are assumed to be alike.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "gyre/cluster/worker_places.h"
#include "gyre/simulate/cost_model.h"
#include "gyre/simulate/repetition_times.h"

namespace gyre {

// Messages that are assumed to cost nothing, to find out what they cost: those of updates, or all.
enum class FreeMessages { None, OfUpdates, All };

// What went over a directed link between two workers.
struct LinkUse {
  int from = 0, to = 0;
  // By MessageKind. Not integers: a long run may send more than fits in 64 bits.
  std::array<double, kMessageKinds> bytes{};
  double busy = 0;  // time in which it was sending

  double of(MessageKind kind) const { return bytes[static_cast<size_t>(kind)]; }
  double total() const { return std::accumulate(bytes.begin(), bytes.end(), 0.0); }
};

class TimedCosts {
 public:
  // places: null if all links are `costs.link` and all workers alike. keeps_use: record what uses() returns. All
  // arguments must outlive it.
  TimedCosts(const Schedule& schedule, const CostModel& costs, const WorkerPlaces* places, bool keeps_use,
             FreeMessages free_messages = FreeMessages::None);

  double duration(int worker, const Action& action) const {
    const double seconds = costs_.duration(action) / (action.kind == ActionKind::Update ? shards_ : 1);
    return places_ == nullptr ? seconds : seconds / places_->speed(worker);
  }
  double arrival(MessageKind kind, int from, int to, int stage, double at) {
    if ((all_free_ && !keeps_use_) || is_free(kind)) return at;
    Sender& sender = links_[static_cast<size_t>(from)];
    const size_t number = find(sender, from, to);
    Link& link = sender.links[number];
    const auto bytes = static_cast<double>(message_bytes(kind, stage));
    if (keeps_use_) sender.bytes[number][static_cast<size_t>(kind)] += bytes;
    if (link.cost == LinkCost{}) return at;
    double& free_at = link.through_port ? port_free_at_[static_cast<size_t>(from)] : link.free_at;
    free_at = std::max(at, free_at) + bytes / link.cost.bandwidth;
    return free_at + link.cost.latency;
  }
  double latency(int from, int to) const {
    if (from == to || all_free_ || free_messages_ != FreeMessages::None) return 0;
    return cost_of(from, to).latency;
  }
  double passing_on(MessageKind kind, int stage) const {
    if (is_free(kind)) return 0;
    if (places_ == nullptr) return passing_on(costs_.link, kind, stage);
    return (kind == MessageKind::Reduction ? next_in_chain_ : to_owner_)[static_cast<size_t>(stage)];
  }

  // By how much later the worker's links have sent everything than at the last call. Those that have sent nothing since
  // are left out.
  Shifts shifts_of_links(int worker);

  // The use of every link over which a message went, in order of sender and receiver.
  std::vector<LinkUse> uses() const;

 private:
  struct Link {
    int to;
    double free_at;
    LinkCost cost;
    bool through_port;
  };
  struct Sender {
    std::vector<Link> links;                               // by receiver
    std::vector<std::array<double, kMessageKinds>> bytes;  // [link]; only if use is kept
    std::vector<ShiftingTime> seen;                        // [link]: free_at, at calls of shifts_of_links()
    size_t next = 0;                                       // the link after the one used last
  };

  // The number of a sender's link, which is made if it is not there. With replicas a sender has thousands of links. Its
  // messages go to the same receivers in the same order again and again, so the next link is mostly the right one.
  size_t find(Sender& sender, int from, int to) {
    auto& links = sender.links;
    size_t number = sender.next;
    if (number >= links.size() || links[number].to != to) {
      const auto found = std::ranges::lower_bound(links, to, {}, &Link::to);
      number = static_cast<size_t>(found - links.begin());
      if (found == links.end() || found->to != to) {
        links.insert(found, {to, 0, cost_of(from, to), shares_port(from, to)});
        if (keeps_use_) sender.bytes.insert(sender.bytes.begin() + static_cast<ptrdiff_t>(number), {{}});
      }
    }
    sender.next = number + 1;
    return number;
  }
  bool is_free(MessageKind kind) const {
    if (free_messages_ == FreeMessages::None) return false;
    return free_messages_ == FreeMessages::All || (kind != MessageKind::Activation && kind != MessageKind::Gradient);
  }
  LinkCost cost_of(int from, int to) const;
  // Whether the link goes through its host's port, whose bandwidth is shared by all that the sender sends to other
  // hosts.
  bool shares_port(int from, int to) const;
  int64_t message_bytes(MessageKind kind, int stage) const {
    const bool is_shard = kind == MessageKind::Sum || kind == MessageKind::Version;
    return costs_.message_bytes(kind, stage) / (is_shard ? shards_ : 1);
  }
  double passing_on(const LinkCost& link, MessageKind kind, int stage) const;
  void count_senders(const Schedule& schedule);
  void time_chains(const Schedule& schedule);

  const CostModel& costs_;
  const WorkerPlaces* places_;
  int shards_;
  bool keeps_use_, all_free_;
  FreeMessages free_messages_;
  std::vector<Sender> links_;                     // [from]
  std::vector<int64_t> senders_;                  // [host]: workers that use its port; empty where no port is shared
  std::vector<double> port_free_at_;              // [worker]: when its part of the port has sent everything so far
  std::vector<ShiftingTime> port_seen_;           // [worker]: the same, at calls of shifts_of_links()
  std::vector<double> next_in_chain_, to_owner_;  // [stage]
};

}  // namespace gyre
