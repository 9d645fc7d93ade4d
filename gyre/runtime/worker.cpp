#include "gyre/runtime/worker.h"

#include <algorithm>

#include "gyre/core/timing.h"

namespace gyre {
namespace {

// Number of parts in which gradients travel, for each stage hosted by the worker.
std::map<int, int64_t> gradient_parts(const WorkerState& state, int64_t part) {
  std::map<int, int64_t> parts;
  for (const auto& [place, replica] : state.replicas) {
    parts[place.second] = GradientChain::parts_of(flat_elements(replica.layers.parameters()), part);
  }
  return parts;
}

}  // namespace

Worker::Worker(WorkerState& state, const PipelinePlan& plan, const Segment& segment, const ReplicaNumbers& numbers,
               const std::vector<std::vector<int64_t>>& in_flight, Transport& transport)
    : state_(state),
      plan_(plan),
      links_(state.number, *segment.schedule, in_flight, gradient_parts(state, plan.options.reduction_part), transport),
      context_(state.number, state.device, plan.options, segment, numbers),
      cursor_(*segment.schedule, state.number, segment.microbatches) {
  const DeviceEvent before = DeviceEvent::record(state.device);
  const StreamScope scope(state.stream);
  before.block(state.device);
  seen_.costs.resize(schedule().stages);
  add_replicas();
  add_owners();
  for (const NormSumLinks& links : links_.norm_sums) norm_sums_.emplace_back(links, state.device);
}

void Worker::add_replicas() {
  for (const auto& [place, links] : links_.replicas) {
    const int stage = place.second;
    replicas_.try_emplace(place, stage, state_.replicas.at(place), links, plan_.shards[stage], context_);
  }
}

void Worker::add_owners() {
  for (const auto& [stage, links] : links_.owners) {
    std::vector<Replica*> beside;  // the replicas whose weights come by no link
    for (int p = 0; p < schedule().pipelines; ++p) {
      beside.push_back(links.versions[p] ? nullptr : &state_.replicas.at({p, stage}));
    }
    owners_.try_emplace(stage, state_.owners.at(stage), links, std::move(beside), context_);
  }
}

Worker::Step Worker::try_step() {
  const StreamScope scope(state_.stream);
  context_.served = false;
  heed_control();
  serve_others();
  const std::optional<Action> action = cursor_.peek();
  context_.status.set_action(action);
  settle_done();
  const bool may_perform = action && (!context_.ahead.full() || settle_oldest());
  if (may_perform && perform(*action)) {
    context_.ahead.end(*action, std::exchange(context_.input_came, {}), std::exchange(context_.report, {}));
    settle_done();
    cursor_.advance();
    return Step::Done;
  }
  if (context_.served) return Step::Done;
  // With nothing else to do it waits for its device, so that a worker that sleeps has nothing under way.
  if (!context_.ahead.empty() && settle_oldest()) return Step::Done;
  if (context_.ahead.empty() && !action && report_end()) return Step::Finished;
  need_ = action ? find_need(*action) : Need{};
  context_.status.set_need(need_);
  return Step::MustWait;
}

// Settles the actions that the device has done.
void Worker::settle_done() {
  while (!context_.ahead.empty() && context_.ahead.oldest_is_done() && settle_oldest()) {
  }
}

// Waits until the device has done the oldest action under way, counts it and sends its report. Returns whether there is
// room for the report; if not, nothing is done.
bool Worker::settle_oldest() {
  if (context_.ahead.oldest_reports() && !links_.reports->has_room()) return false;
  ActionsAhead::Done done = context_.ahead.take_oldest();
  account(done);
  if (done.report) links_.reports->send(std::move(*done.report));
  return true;
}

// Does what other workers wait for, whatever this worker's own program waits for.
void Worker::serve_others() {
  for (auto& [place, replica] : replicas_) replica.pass_on_gradients();
  for (auto& [stage, owner] : owners_) owner.gather_early();
  for (NormSum& sum : norm_sums_) context_.served |= sum.pass_on();
}

// Does the action, if everything it needs is there.
bool Worker::perform(const Action& action) {
  context_.ahead.begin();
  const auto replica = [&]() -> RunningReplica& { return replicas_.at({action.pipeline, action.stage}); };
  switch (action.kind) {
    case ActionKind::Forward:
      return replica().forward(action);
    case ActionKind::Backward:
    case ActionKind::BackwardInput:
      return replica().backward(action);
    case ActionKind::BackwardWeights:
      replica().backward_weights(action);
      return true;
    case ActionKind::Update:
      return owners_.at(action.stage).update(action);
    case ActionKind::Adopt:
      return replica().adopt(action);
  }
  return false;
}

void Worker::account(const ActionsAhead::Done& done) {
  const double seconds = seconds_between(done.started, done.ended);
  const Action& action = done.action;
  seen_.worker.busy_seconds += seconds;
  ActionCost& cost = seen_.costs[action.stage][action.kind];
  (cost.count++ == 0 ? cost.first_seconds : cost.seconds) += seconds;
  const int64_t first = action.is_per_window() ? action.microbatch * schedule().window : action.microbatch;
  if (first >= context_.segment.traced_microbatches) return;
  const auto since_start = [&](auto time) { return seconds_between(context_.segment.started, time); };
  TimedAction timed{action, since_start(done.started), since_start(done.ended), {}};
  if (done.came) timed.came = since_start(*done.came);
  seen_.worker.trace.push_back(timed);
}

// A drain: holds and reports what has been taken in here; then leaves out everything at or past the limit.
void Worker::heed_control() {
  Admission& admission = context_.admission;
  while (links_.reports->has_room()) {  // for an answer to each
    const auto message = links_.control->try_receive();
    if (!message) return;
    context_.served = true;
    if (const auto limit = to_limit(*message)) {
      cursor_.restrict_to(std::min(*limit, cursor_.limit()));
      admission.holding = false;
    } else {
      admission.holding = true;
      links_.reports->send(to_message(HeldReport{admission.admitted}));
    }
  }
}

// Reports once that the program has ended, with what was observed. Returns whether the report has been sent.
bool Worker::report_end() {
  if (ended_) return true;
  const bool idle =
      std::all_of(replicas_.begin(), replicas_.end(), [](const auto& r) { return r.second.has_passed_on_all(); });
  if (!idle || !links_.reports->has_room()) return false;
  DeviceEvent::record(state_.device).wait();  // from here on any thread may read tensors and end leases
  seen_.worker.memory = ProcessMemory::now(state_.device);
  for (const auto& [place, replica] : replicas_) seen_.replicas.push_back(replica.seen());
  links_.reports->send(to_message(std::move(seen_)));
  ended_ = true;
  return true;
}

// What the next action waits for, after it could not be performed.
Need Worker::find_need(const Action& action) const {
  using What = Need::What;
  if (context_.ahead.full()) return {What::ReportRoom};
  const auto host = [&](int stage) { return only_other({schedule().worker_of(action.pipeline, stage)}); };
  const int stage = action.stage;
  const bool is_last = stage + 1 == schedule().stages;
  switch (action.kind) {
    case ActionKind::Forward: {
      const RunningReplica& replica = replicas_.at({action.pipeline, stage});
      if (!is_last && !replica.has_output_room()) return {What::OutputRoom, host(stage + 1)};
      if (!replica.has_weights()) return {What::FirstVersion, only_other(owners_of(schedule(), stage))};
      if (stage == 0) return {What::DrainPoint};
      return replica.has_input() ? Need{What::TiedWeight, host(0)} : Need{What::Activation, host(stage - 1)};
    }
    case ActionKind::Backward:
    case ActionKind::BackwardInput:
      if (!is_last) return {What::Gradient, host(stage + 1)};
      break;
    case ActionKind::Update:
      return owners_.at(stage).has_gradient() ? Need{What::Norms, only_other(owners_whose_norms_count(stage))}
                                              : Need{What::Sums, only_other(hosts_of_gradients(stage))};
    case ActionKind::Adopt:
      return {replicas_.at({action.pipeline, stage}).has_weights() ? What::Version : What::FirstVersion,
              only_other(owners_of(schedule(), stage))};
    case ActionKind::BackwardWeights:
      break;
  }
  return {};
}

// The workers with replicas of the stage, whose gradients its owners sum; with a tied weight also those of last stages.
std::vector<int> Worker::hosts_of_gradients(int stage) const {
  std::vector<int> hosts;
  for (const auto& placement : schedule().placement) {
    hosts.push_back(placement[stage]);
    if (schedule().tied && stage == 0) hosts.push_back(placement.back());
  }
  return hosts;
}

std::vector<int> Worker::owners_whose_norms_count(int stage) const {
  if (!schedule().global_norm) return owners_of(schedule(), stage);
  std::vector<int> owners;
  for (const auto& shard : schedule().owner) owners.insert(owners.end(), shard.begin(), shard.end());
  return owners;
}

// The one worker besides this one that is in `workers`; kNobody if there is none or more than one.
int Worker::only_other(std::vector<int> workers) const {
  std::erase(workers, number());
  const bool one = !workers.empty() &&
                   std::all_of(workers.begin(), workers.end(), [&](int worker) { return worker == workers.front(); });
  return one ? workers.front() : kNobody;
}

WorkerStatus Worker::status() const {
  WorkerStatus status = context_.status.read();
  status.worker = number();
  links_.count_waiting(status);
  return status;
}

}  // namespace gyre
