#include "gyre/simulate/timed_costs.h"

#include "gyre/schedule/compute_costs.h"
#include "gyre/schedule/reduction_chains.h"

namespace gyre {

TimedCosts::TimedCosts(const Schedule& schedule, const CostModel& costs, const WorkerPlaces* places, bool keeps_use,
                       FreeMessages free_messages)
    : costs_(costs),
      places_(places),
      shards_(schedule.shards()),
      keeps_use_(keeps_use),
      all_free_(places == nullptr && costs.link == LinkCost{}),
      free_messages_(free_messages),
      links_(static_cast<size_t>(schedule.workers)) {
  if (places == nullptr || free_messages == FreeMessages::All) return;
  const bool any_shared = std::ranges::any_of(places->cluster().links, &LinkClass::shared);
  if (any_shared && places->hosts() > 1) count_senders(schedule);
  time_chains(schedule);
}

LinkCost TimedCosts::cost_of(int from, int to) const {
  if (places_ == nullptr) return costs_.link;
  const LinkClass* link = places_->link(from, to);
  if (link == nullptr) return {};
  const int64_t senders = shares_port(from, to) ? senders_[static_cast<size_t>(places_->host_of(from))] : 1;
  return {link->latency, link->bandwidth / static_cast<double>(std::max<int64_t>(1, senders))};
}

bool TimedCosts::shares_port(int from, int to) const {
  if (senders_.empty() || places_->host_of(from) == places_->host_of(to)) return false;
  const LinkClass* link = places_->link(from, to);
  return link != nullptr && link->shared;
}

// Counts the workers of each host that send through its shared port. Each gets an equal part of the bandwidth: which of
// them send at the same moment cannot be known, since the timeline computes workers one after the other.
void TimedCosts::count_senders(const Schedule& schedule) {
  std::vector<bool> sends(static_cast<size_t>(schedule.workers));
  struct Notes : ComputeCosts {
    double arrival(MessageKind, int from, int to, int, double at) {
      const LinkClass* link = places.host_of(from) == places.host_of(to) ? nullptr : places.link(from, to);
      if (link != nullptr && link->shared) sends[static_cast<size_t>(from)] = true;
      return at;
    }
    const WorkerPlaces& places;
    std::vector<bool>& sends;
    Notes(const WorkerPlaces& p, std::vector<bool>& s) : places(p), sends(s) {}
  } notes(*places_, sends);
  const auto ignore = [](int, const Action&, double, double) {};
  Timeline(schedule, 2 * schedule.shift, notes, ignore).run();
  senders_.resize(static_cast<size_t>(places_->hosts()));
  port_free_at_.resize(static_cast<size_t>(schedule.workers));
  port_seen_.resize(static_cast<size_t>(schedule.workers));
  for (int worker = 0; worker < schedule.workers; ++worker) {
    if (sends[static_cast<size_t>(worker)]) ++senders_[static_cast<size_t>(places_->host_of(worker))];
  }
}

// The hops of a chain may use different links; they are counted at their mean. The slowest link decides how long a
// whole sum takes; arrival() counts that, when the replica before that link sends its own sum over it. From the end of
// a chain to the owners, the slowest link counts.
void TimedCosts::time_chains(const Schedule& schedule) {
  next_in_chain_.resize(static_cast<size_t>(schedule.stages));
  to_owner_.resize(static_cast<size_t>(schedule.stages));
  if (schedule.pipelines == 1) return;
  const ReductionChains chains(schedule);
  for (int stage = 0; stage < schedule.stages; ++stage) {
    double hops = 0, seconds = 0, slowest = 0;
    for (int pipeline = 0; pipeline < schedule.pipelines; ++pipeline) {
      const int from = schedule.worker_of(pipeline, stage);
      if (chains.sends_to_owners(pipeline)) {
        for (const auto& owner : schedule.owner) {
          if (from == owner[stage]) continue;
          slowest = std::max(slowest, passing_on(cost_of(from, owner[stage]), MessageKind::Sum, stage));
        }
      } else if (chains.previous(pipeline)) {
        ++hops;
        seconds += passing_on(cost_of(from, chains.next_worker(pipeline, stage)), MessageKind::Reduction, stage);
      }
    }
    next_in_chain_[static_cast<size_t>(stage)] = hops > 0 ? seconds / hops : 0;
    to_owner_[static_cast<size_t>(stage)] = slowest;
  }
}

double TimedCosts::passing_on(const LinkCost& link, MessageKind kind, int stage) const {
  constexpr int64_t kPartBytes = 4 * kReductionPart;
  const int64_t bytes = message_bytes(kind, stage);
  return link.latency +
         static_cast<double>(kind == MessageKind::Reduction ? std::min(bytes, kPartBytes) : bytes) / link.bandwidth;
}

Shifts TimedCosts::shifts_of_links(int worker) {
  Shifts shifts;
  const auto see = [&](double free_at, ShiftingTime& seen) {
    if (seen.has_changed(free_at)) seen.see(free_at, shifts);
  };
  const auto from = static_cast<size_t>(worker);
  Sender& sender = links_[from];
  // New links have moved others in the vectors. They come in the first repetitions.
  if (sender.seen.size() != sender.links.size()) sender.seen.assign(sender.links.size(), {});
  for (size_t link = 0; link < sender.links.size(); ++link) see(sender.links[link].free_at, sender.seen[link]);
  if (!port_seen_.empty()) see(port_free_at_[from], port_seen_[from]);
  return shifts;
}

std::vector<LinkUse> TimedCosts::uses() const {
  std::vector<LinkUse> uses;
  for (size_t from = 0; from < links_.size(); ++from) {
    const Sender& sender = links_[from];
    for (size_t link = 0; link < sender.bytes.size(); ++link) {
      LinkUse use{static_cast<int>(from), sender.links[link].to, sender.bytes[link], 0};
      use.busy = use.total() / sender.links[link].cost.bandwidth;
      uses.push_back(use);
    }
  }
  return uses;
}

}  // namespace gyre
