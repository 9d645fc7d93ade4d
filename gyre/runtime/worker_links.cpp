#include "gyre/runtime/worker_links.h"

#include <set>

#include "gyre/schedule/reduction_chains.h"

namespace gyre {
namespace {

// A forward-only program holds nothing in flight; two waiting messages are enough to hide the hand-over.
constexpr int64_t kForwardOnlyCapacity = 2;
// The conductor answers at its own pace; a worker waits while there is no room for its report.
constexpr int64_t kReports = 1024;
constexpr int64_t kControls = 2;  // hold, limit

// The ends of every link, so that both ends describe it alike.
class Ends {
 public:
  Ends(const Schedule& schedule, const ReductionChains& chains, const std::vector<std::vector<int64_t>>& in_flight)
      : schedule_(schedule),
        chains_(chains),
        in_flight_(in_flight),
        // An owner's versions and a replica's sums get ahead of the other side by at most the windows of one
        // repetition.
        windows_(schedule.shift / schedule.window + 2) {}

  LinkEnds activation(int pipeline, int stage) const {
    return {schedule_.worker_of(pipeline, stage - 1), schedule_.worker_of(pipeline, stage),
            in_flight(pipeline, stage - 1)};
  }
  LinkEnds gradient(int pipeline, int stage) const {
    return {schedule_.worker_of(pipeline, stage + 1), schedule_.worker_of(pipeline, stage), in_flight(pipeline, stage)};
  }
  LinkEnds reduction(int pipeline, int stage, int64_t parts) const {
    return {schedule_.worker_of(pipeline, stage), chains_.next_worker(pipeline, stage), windows_ * parts};
  }
  LinkEnds sum(int pipeline, int stage, int shard) const {
    return {schedule_.worker_of(pipeline, stage), schedule_.owner[shard][stage], windows_};
  }
  LinkEnds version(int pipeline, int stage, int shard) const {
    return {schedule_.owner[shard][stage], schedule_.worker_of(pipeline, stage), windows_ + 1};  // + the first
  }
  // What is sent belongs to a microbatch that is in flight at the first stage.
  LinkEnds tied_weight(int pipeline) const {
    return {schedule_.worker_of(pipeline, 0), schedule_.worker_of(pipeline, schedule_.stages - 1),
            in_flight(pipeline, 0) + 1};
  }
  LinkEnds tied_sum(int pipeline) const {
    return {schedule_.worker_of(pipeline, schedule_.stages - 1), schedule_.worker_of(pipeline, 0),
            in_flight(pipeline, 0) + 1};
  }
  // summed_at: the stage whose first owner sums the norms.
  LinkEnds norm(int stage, int shard, int summed_at) const {
    return {schedule_.owner[shard][stage], schedule_.owner[0][summed_at], windows_};
  }
  LinkEnds norm_sum(int stage, int shard, int summed_at) const {
    return {schedule_.owner[0][summed_at], schedule_.owner[shard][stage], windows_};
  }

 private:
  int64_t in_flight(int pipeline, int stage) const {
    return schedule_.forward_only ? kForwardOnlyCapacity : in_flight_[pipeline][stage];
  }
  const Schedule& schedule_;
  const ReductionChains& chains_;
  const std::vector<std::vector<int64_t>>& in_flight_;
  int64_t windows_;
};

LinkEnds control_ends(int worker) {
  return {kConductor, worker, kControls};
}
LinkEnds report_ends(int worker) {
  return {worker, kConductor, kReports};
}

// Makes the links of one worker's replicas and owners, one place at a time.
class Maker {
 public:
  Maker(int worker, const Schedule& schedule, const std::vector<std::vector<int64_t>>& in_flight,
        const std::map<int, int64_t>& parts, Transport& transport)
      : schedule_(schedule),
        parts_(parts),
        transport_(transport),
        chains_(schedule),
        ends_(schedule, chains_, in_flight),
        adopting_(adopting_replicas(schedule, worker)) {}

  ReplicaLinks replica(int p, int stage) {
    ReplicaLinks links;
    if (!changes_with_owner(p, stage)) {
      for (int shard = 0; shard < schedule_.shards(); ++shard) {
        links.versions.push_back(
            transport_.receiver({LinkKind::Version, p, stage, shard}, ends_.version(p, stage, shard)));
      }
    }
    const bool first = stage == 0, last = stage + 1 == schedule_.stages;
    if (!first) links.inputs = transport_.receiver({LinkKind::Activation, p, stage}, ends_.activation(p, stage));
    if (!last) {
      links.outputs = transport_.sender({LinkKind::Activation, p, stage + 1}, ends_.activation(p, stage + 1));
    }
    const LinkId tied_weight{LinkKind::TiedWeight, p, 0}, tied_sum{LinkKind::TiedSum, p, 0};
    if (schedule_.tied && first) links.tied_weights = transport_.sender(tied_weight, ends_.tied_weight(p));
    if (schedule_.tied && last) links.tied_reads = transport_.receiver(tied_weight, ends_.tied_weight(p));
    if (schedule_.forward_only) return links;
    if (schedule_.tied && first) links.tied_sums = transport_.receiver(tied_sum, ends_.tied_sum(p));
    if (schedule_.tied && last) links.tied_gradients = transport_.sender(tied_sum, ends_.tied_sum(p));
    if (!first) {
      links.grad_inputs = transport_.sender({LinkKind::Gradient, p, stage - 1}, ends_.gradient(p, stage - 1));
    }
    if (!last) links.grad_outputs = transport_.receiver({LinkKind::Gradient, p, stage}, ends_.gradient(p, stage));
    add_chain(p, stage, links);
    return links;
  }

  OwnerLinks owner(int stage, int shard) {
    OwnerLinks links;
    links.shard = shard;
    for (int p = 0; p < schedule_.pipelines; ++p) {
      auto& version = links.versions.emplace_back();
      if (!changes_with_owner(p, stage)) {
        version = transport_.sender({LinkKind::Version, p, stage, shard}, ends_.version(p, stage, shard));
      }
      if (schedule_.forward_only) continue;
      auto& sum = links.sums.emplace_back();
      if (chains_.sends_to_owners(p)) {
        sum = transport_.receiver({LinkKind::Sum, p, stage, shard}, ends_.sum(p, stage, shard));
      }
    }
    if (!schedule_.sums_norms()) return links;
    const int summed_at = schedule_.norms_added_at(stage);
    links.norms = transport_.sender({LinkKind::Norm, 0, stage, shard}, ends_.norm(stage, shard, summed_at));
    links.norm_sum = transport_.receiver({LinkKind::NormSum, 0, stage, shard}, ends_.norm_sum(stage, shard, summed_at));
    return links;
  }

  // The links for the norms that the first owner of stage `summed_at` sums.
  NormSumLinks norm_sum(int summed_at) {
    NormSumLinks links;
    for (int stage = 0; stage < schedule_.stages; ++stage) {
      if (schedule_.norms_added_at(stage) != summed_at) continue;
      for (int shard = 0; shard < schedule_.shards(); ++shard) {
        links.norms.push_back(
            transport_.receiver({LinkKind::Norm, 0, stage, shard}, ends_.norm(stage, shard, summed_at)));
        links.sums.push_back(
            transport_.sender({LinkKind::NormSum, 0, stage, shard}, ends_.norm_sum(stage, shard, summed_at)));
      }
    }
    return links;
  }

 private:
  void add_chain(int p, int stage, ReplicaLinks& links) {
    if (const auto before = chains_.previous(p)) {
      links.earlier_sums =
          transport_.receiver({LinkKind::Reduction, *before, stage}, ends_.reduction(*before, stage, parts_.at(stage)));
    }
    if (!chains_.sends_to_owners(p)) {
      links.reductions =
          transport_.sender({LinkKind::Reduction, p, stage}, ends_.reduction(p, stage, parts_.at(stage)));
      return;
    }
    for (int shard = 0; shard < schedule_.shards(); ++shard) {
      links.sums.push_back(transport_.sender({LinkKind::Sum, p, stage, shard}, ends_.sum(p, stage, shard)));
    }
  }

  bool changes_with_owner(int p, int stage) const {
    return schedule_.shards() == 1 && schedule_.worker_of(p, stage) == schedule_.owner[0][stage] &&
           adopting_.count({p, stage}) == 0;
  }

  const Schedule& schedule_;
  const std::map<int, int64_t>& parts_;
  Transport& transport_;
  ReductionChains chains_;
  Ends ends_;
  std::set<std::pair<int, int>> adopting_;
};

// Makes no links, but records whom they would connect.
class NotedEnds final : public Transport {
 public:
  std::unique_ptr<Sender> sender(const LinkId&, const LinkEnds& ends) override {
    pairs.insert({ends.from, ends.to});
    return nullptr;
  }
  std::unique_ptr<Receiver> receiver(const LinkId&, const LinkEnds& ends) override {
    pairs.insert({ends.from, ends.to});
    return nullptr;
  }
  std::set<std::pair<int, int>> pairs;
};

}  // namespace

WorkerLinks::WorkerLinks(int worker, const Schedule& schedule, const std::vector<std::vector<int64_t>>& in_flight,
                         const std::map<int, int64_t>& parts, Transport& transport)
    : control(transport.receiver(LinkId::of_worker(LinkKind::Control, worker), control_ends(worker))),
      reports(transport.sender(LinkId::of_worker(LinkKind::Report, worker), report_ends(worker))) {
  Maker maker(worker, schedule, in_flight, parts, transport);
  for (int stage = 0; stage < schedule.stages; ++stage) {
    for (int p = 0; p < schedule.pipelines; ++p) {
      if (schedule.worker_of(p, stage) == worker) replicas.emplace(std::pair(p, stage), maker.replica(p, stage));
    }
    for (int shard = 0; shard < schedule.shards(); ++shard) {
      if (schedule.owner[shard][stage] == worker) owners.emplace(stage, maker.owner(stage, shard));
    }
    const bool sums_here = schedule.owner[0][stage] == worker && schedule.norms_added_at(stage) == stage;
    if (schedule.sums_norms() && sums_here) norm_sums.push_back(maker.norm_sum(stage));
  }
}

std::set<std::pair<int, int>> linked_workers(const Schedule& schedule) {
  // Capacities make no difference here.
  const std::vector<std::vector<int64_t>> in_flight(static_cast<size_t>(schedule.pipelines),
                                                    std::vector<int64_t>(static_cast<size_t>(schedule.stages), 1));
  std::map<int, int64_t> parts;
  for (int stage = 0; stage < schedule.stages; ++stage) parts[stage] = 1;
  NotedEnds noted;
  for (int worker = 0; worker < schedule.workers; ++worker) {
    const WorkerLinks links(worker, schedule, in_flight, parts, noted);
  }
  return noted.pairs;
}

ConductorLinks::ConductorLinks(const Schedule& schedule, Transport& transport) {
  for (int worker = 0; worker < schedule.workers; ++worker) {
    control.push_back(transport.sender(LinkId::of_worker(LinkKind::Control, worker), control_ends(worker)));
    reports.push_back(transport.receiver(LinkId::of_worker(LinkKind::Report, worker), report_ends(worker)));
  }
}

void WorkerLinks::count_waiting(WorkerStatus& status) const {
  const auto in = [](const std::unique_ptr<Receiver>& link) { return link ? link->waiting() : 0; };
  for (const auto& [place, links] : replicas) {
    status.activations += in(links.inputs);
    status.gradients += in(links.grad_outputs);
    status.others += in(links.earlier_sums) + in(links.tied_sums) + in(links.tied_reads);
    for (const auto& version : links.versions) status.others += in(version);
  }
  for (const auto& [stage, links] : owners) {
    for (const auto& sum : links.sums) status.others += in(sum);
    status.others += in(links.norm_sum);
  }
  for (const NormSumLinks& links : norm_sums) {
    for (const auto& norm : links.norms) status.others += in(norm);
  }
}

}  // namespace gyre
