#include "gyre/runtime/worker_links.h"

#include <set>

#include "gyre/schedule/reduction_chains.h"

namespace gyre {
namespace {

// A forward-only program holds nothing in flight; two waiting messages hide the hand-over.
constexpr int64_t kForwardOnlyCapacity = 2;
// The conductor answers at its own pace; a worker whose reports find no room waits for it.
constexpr int64_t kReports = 1024;
constexpr int64_t kControls = 2;  // hold, limit

// Both ends of a link say the same of it.
class Ends {
 public:
  Ends(const Schedule& schedule, const ReductionChains& chains)
      : schedule_(schedule),
        chains_(chains),
        // No owner makes, and no replica finishes, more windows than a repetition has before the other side takes them.
        windows_(schedule.shift / schedule.window + 2) {}

  LinkEnds activation(int pipeline, int stage) const {
    return {schedule_.worker_of(pipeline, stage - 1), schedule_.worker_of(pipeline, stage),
            in_flight(pipeline, stage - 1)};
  }
  LinkEnds gradient(int pipeline, int stage) const {
    return {schedule_.worker_of(pipeline, stage + 1), schedule_.worker_of(pipeline, stage), in_flight(pipeline, stage)};
  }
  LinkEnds reduction(int pipeline, int stage, int64_t parts) const {
    return {schedule_.worker_of(pipeline, stage), chains_.receiver(pipeline, stage), windows_ * parts};
  }
  LinkEnds version(int pipeline, int stage) const {
    return {schedule_.owner[stage], schedule_.worker_of(pipeline, stage), windows_ + 1};  // and the segment's first
  }
  LinkEnds norm(int stage) const { return {schedule_.owner[stage], schedule_.owner[0], windows_}; }
  LinkEnds norm_sum(int stage) const { return {schedule_.owner[0], schedule_.owner[stage], windows_}; }

 private:
  int64_t in_flight(int pipeline, int stage) const {
    return schedule_.forward_only ? kForwardOnlyCapacity : max_in_flight(schedule_, pipeline, stage);
  }
  const Schedule& schedule_;
  const ReductionChains& chains_;
  int64_t windows_;
};

LinkEnds control_ends(int worker) {
  return {kConductor, worker, kControls};
}
LinkEnds report_ends(int worker) {
  return {worker, kConductor, kReports};
}

// Replicas (pipeline, stage) of `worker` that take a new version at an action of their own, not when the owner makes
// it.
std::set<std::pair<int, int>> adopting_replicas(const Schedule& schedule, int worker) {
  std::set<std::pair<int, int>> replicas;
  const Program& program = schedule.programs[worker];
  for (const auto* actions : {&program.prologue, &program.period}) {
    for (const Action& action : *actions) {
      if (action.kind == ActionKind::Adopt) replicas.insert({action.pipeline, action.stage});
    }
  }
  return replicas;
}

}  // namespace

WorkerLinks::WorkerLinks(int worker, const Schedule& schedule, const std::map<int, int64_t>& parts, bool global_norm,
                         Transport& transport)
    : control(transport.receiver({LinkKind::Control, 0, worker}, control_ends(worker))),
      reports(transport.sender({LinkKind::Report, 0, worker}, report_ends(worker))) {
  const ReductionChains chains(schedule);
  const Ends ends(schedule, chains);
  const auto adopting = adopting_replicas(schedule, worker);
  const auto changes_with_owner = [&](int p, int stage) {
    return schedule.worker_of(p, stage) == schedule.owner[stage] && adopting.count({p, stage}) == 0;
  };
  for (int stage = 0; stage < schedule.stages; ++stage) {
    for (int p = 0; p < schedule.pipelines; ++p) {
      if (schedule.worker_of(p, stage) != worker) continue;
      ReplicaLinks& links = replicas[{p, stage}];
      if (!changes_with_owner(p, stage)) {
        links.versions = transport.receiver({LinkKind::Version, p, stage}, ends.version(p, stage));
      }
      if (stage > 0) {
        links.inputs = transport.receiver({LinkKind::Activation, p, stage}, ends.activation(p, stage));
      }
      if (stage + 1 < schedule.stages) {
        links.outputs = transport.sender({LinkKind::Activation, p, stage + 1}, ends.activation(p, stage + 1));
      }
      if (schedule.forward_only) continue;
      links.is_last = chains.sends_to_owner(p);
      links.reductions = transport.sender({LinkKind::Reduction, p, stage},
                                          ends.reduction(p, stage, links.is_last ? 1 : parts.at(stage)));
      if (const auto before = chains.previous(p)) {
        links.earlier_sums =
            transport.receiver({LinkKind::Reduction, *before, stage}, ends.reduction(*before, stage, parts.at(stage)));
      }
      if (stage > 0) {
        links.grad_inputs = transport.sender({LinkKind::Gradient, p, stage - 1}, ends.gradient(p, stage - 1));
      }
      if (stage + 1 < schedule.stages) {
        links.grad_outputs = transport.receiver({LinkKind::Gradient, p, stage}, ends.gradient(p, stage));
      }
    }
    if (schedule.owner[stage] != worker) continue;
    OwnerLinks& links = owners[stage];
    for (int p = 0; p < schedule.pipelines; ++p) {
      links.versions.push_back(changes_with_owner(p, stage)
                                   ? nullptr
                                   : transport.sender({LinkKind::Version, p, stage}, ends.version(p, stage)));
      if (schedule.forward_only) continue;
      links.reductions.push_back(chains.sends_to_owner(p)
                                     ? transport.receiver({LinkKind::Reduction, p, stage}, ends.reduction(p, stage, 1))
                                     : nullptr);
    }
    if (!global_norm || schedule.forward_only) continue;
    links.norms = transport.sender({LinkKind::Norm, 0, stage}, ends.norm(stage));
    links.norm_sum = transport.receiver({LinkKind::NormSum, 0, stage}, ends.norm_sum(stage));
  }
  if (!global_norm || schedule.forward_only || schedule.owner[0] != worker) return;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    norm_sum.norms.push_back(transport.receiver({LinkKind::Norm, 0, stage}, ends.norm(stage)));
    norm_sum.sums.push_back(transport.sender({LinkKind::NormSum, 0, stage}, ends.norm_sum(stage)));
  }
}

ConductorLinks::ConductorLinks(const Schedule& schedule, Transport& transport) {
  for (int worker = 0; worker < schedule.workers; ++worker) {
    control.push_back(transport.sender({LinkKind::Control, 0, worker}, control_ends(worker)));
    reports.push_back(transport.receiver({LinkKind::Report, 0, worker}, report_ends(worker)));
  }
}

}  // namespace gyre
