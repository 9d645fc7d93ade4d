// Computes when every action of a restriction starts and ends, given the costs of actions and messages. This is the
// only place that knows how programs, messages, reductions and versions depend on each other in time. The simulator
// and the builders that search for an order use it.
//
// A worker's program is a fixed order and a directed link has one sender, so each action's time follows from its
// predecessors' times, in whatever order they are computed. Workers take turns, each going on until it must wait or its
// turn ends. Time is linear in actions; memory is linear in messages in transit.
//
// Only one message has no place in its sender's program: a first stage that shares a weight with the last one sends its
// sum of gradients when the last stage's comes, if that is after its own. Until then its worker's steps are taken in
// the order of time, so that links send first what is ready first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/schedule/arrivals.h"
#include "gyre/schedule/reduction_chains.h"
#include "gyre/schedule/ring_map.h"
#include "gyre/schedule/schedule.h"
#include "gyre/schedule/step_queue.h"
#include "gyre/schedule/worker_queue.h"

namespace gyre {

class Deadlock : public InputError {
 public:
  using InputError::InputError;
};

// Costs has
//   double duration(int worker, const Action&)                           time of an action on its worker
//   double arrival(MessageKind, int from, int to, int stage, double at)  when a message that `stage` sends at `at`
//                                                                        arrives; calls come in the sender's order
//   double latency(int from, int to)                                     of a message of no size; 0 within a worker
//   double passing_on(MessageKind, int stage)                            time from the arrival of a gradient sum at one
//                                                                        replica to its arrival at the next or an owner
// Visit is called as visit(worker, action, start, end), in program order for each worker; the order across workers is
// arbitrary.
template <typename Costs, typename Visit>
class Timeline {
 public:
  Timeline(const Schedule& schedule, int64_t microbatches, Costs& costs, Visit& visit)
      : schedule_(schedule),
        costs_(costs),
        visit_(visit),
        chains_(schedule),
        is_tied_(schedule.tied && schedule.stages > 1),
        messages_(1),
        has_sums_(stages_with_sums()),
        gradient_counts_(has_any_sums() ? replicas() : 0, 1),
        reductions_(has_any_sums() ? static_cast<size_t>(schedule.stages) : 0),
        norms_(schedule.sums_norms() ? static_cast<size_t>(schedule.stages) : 0, 1),
        tied_(is_tied_ ? static_cast<size_t>(schedule.pipelines) : 0),
        tied_sums_(is_tied_ ? static_cast<size_t>(schedule.pipelines) : 0, 1),
        unsent_tied_(is_tied_ ? static_cast<size_t>(schedule.workers) : 0),
        adopters_(static_cast<size_t>(schedule.stages)),
        versions_(find_adopters() ? static_cast<size_t>(schedule.stages) : 0, 1),
        limit_(microbatches),
        free_at_(static_cast<size_t>(schedule.workers)),
        queue_(schedule.workers) {
    for (int worker = 0; worker < schedule.workers; ++worker) cursors_.emplace_back(schedule, worker, microbatches);
    if (is_tied_) find_pipelines_without_adoptions();
  }

  // Returns the makespan. Throws Deadlock if the schedule cannot finish; validate() says why.
  double run() {
    return run([] { return kUnlimited; });
  }
  // limit() is asked again and again. If it is lower than before, the restriction ends there: at a multiple of the
  // window, beyond all microbatches that were begun, and those of actions that were ready to begin.
  template <typename Limit>
  double run(const Limit& limit) {
    do {
      while (!queue_.empty()) {
        restrict_to(limit());
        run_worker(queue_.take());
      }
    } while (take_earliest_step());
    for (const ProgramCursor& cursor : cursors_) {
      if (cursor.peek()) throw Deadlock("schedule " + schedule_.name + ": deadlock; gyre schedule shows where");
    }
    return *std::max_element(free_at_.begin(), free_at_.end());
  }

 private:
  // After this many actions a worker goes behind all others. Otherwise a program that waits for nothing (a forward-only
  // one) would fill the RingMaps. Short turns keep these small enough for the caches.
  static constexpr int kActionsPerTurn = 16;

  void restrict_to(int64_t limit) {
    if (limit >= limit_) return;
    limit_ = limit;
    for (ProgramCursor& cursor : cursors_) cursor.restrict_to(limit);
  }

  // Fills adopters_. Returns whether there are any.
  bool find_adopters() {
    const auto adopting = adopting_replicas(schedule_);
    for (const auto& [pipeline, stage] : adopting) {
      adopters_[static_cast<size_t>(stage)].push_back({pipeline, schedule_.worker_of(pipeline, stage)});
    }
    return !adopting.empty();
  }

  void find_pipelines_without_adoptions() {
    const std::vector<bool> adopts = adopting_pipelines(schedule_);
    for (int pipeline = 0; pipeline < schedule_.pipelines; ++pipeline) {
      if (!adopts[static_cast<size_t>(pipeline)]) without_adoptions_.push_back(pipeline);
    }
  }

  // [stage]: whether its updates wait for more than its worker's own backwards.
  std::vector<bool> stages_with_sums() const {
    std::vector<bool> has_sums(static_cast<size_t>(schedule_.stages));
    for (int stage = 0; stage < schedule_.stages && !schedule_.forward_only; ++stage) {
      has_sums[static_cast<size_t>(stage)] = schedule_.pipelines > 1 || (is_tied_ && stage == 0) ||
                                             schedule_.sums_norms() ||
                                             schedule_.owner[0][stage] != schedule_.worker_of(0, stage);
    }
    return has_sums;
  }
  bool has_any_sums() const {
    return is_tied_ || std::find(has_sums_.begin(), has_sums_.end(), true) != has_sums_.end();
  }

  size_t replicas() const { return static_cast<size_t>(schedule_.pipelines) * static_cast<size_t>(schedule_.stages); }
  // A pipeline's stages are adjacent, since a microbatch is followed from stage to stage.
  size_t slot(int pipeline, int stage) const {
    return static_cast<size_t>(pipeline) * static_cast<size_t>(schedule_.stages) + static_cast<size_t>(stage);
  }

  void run_worker(int worker) {
    ProgramCursor& cursor = cursors_[worker];
    for (int turn = 0; cursor.peek(); ++turn) {
      if (turn == kActionsPerTurn) {
        queue_.put_back(worker);
        return;
      }
      const Action action = *cursor.peek();
      double ready = 0;
      if (!take_needs(worker, action, ready)) return;
      const double start = std::max(free_at_[worker], ready);
      if (is_tied_ && unsent_tied_[worker] > 0) return steps_.plan({Step::BeginAction, worker, action, start});
      end_action(worker, action, begin_action(worker, action, start));
    }
  }

  // Returns when the action ends.
  double begin_action(int worker, const Action& action, double start) {
    if (is_tied_ && action.kind == ActionKind::Forward && action.stage == 0) send_tied_weight(worker, action, start);
    const double end = start + costs_.duration(worker, action);
    free_at_[worker] = end;
    visit_(worker, action, start, end);
    return end;
  }
  void end_action(int worker, const Action& action, double end) {
    give_results(worker, action, end);
    cursors_[worker].advance();
  }

  // For when no worker can go on in another way: whatever is still to come is then later than the earliest step.
  // Returns whether there is one.
  bool take_earliest_step() {
    if (steps_.empty()) return false;
    const PlannedStep next = steps_.take();
    switch (next.step) {
      case Step::BeginAction:
        steps_.plan({Step::EndAction, next.worker, next.action, begin_action(next.worker, next.action, next.at)});
        break;
      case Step::EndAction:
        end_action(next.worker, next.action, next.at);
        queue_.put_back(next.worker);
        break;
      case Step::SendTiedSum:
        send_tied_sum(next.worker, next.action, next.at);
        break;
    }
    return true;
  }

  // If all messages that the action needs have been sent, takes them and raises `ready` to the last arrival. Otherwise
  // records what the worker waits for and returns false.
  bool take_needs(int worker, const Action& action, double& ready) {
    switch (action.kind) {
      case ActionKind::Forward:
        if (action.stage > 0 && !take_message(worker, MessageKind::Activation, action, ready)) return false;
        if (is_tied_ && action.stage + 1 == schedule_.stages) take_tied_weight(action, ready);
        return true;
      case ActionKind::Backward:
      case ActionKind::BackwardInput:
        return action.stage + 1 == schedule_.stages || take_message(worker, MessageKind::Gradient, action, ready);
      case ActionKind::BackwardWeights:
        return true;  // its input half comes earlier in the same program
      case ActionKind::Update:
        return !has_sums(action.stage) || take_reductions(worker, action, ready);
      case ActionKind::Adopt:
        return take_version(worker, action, ready);
    }
    return true;
  }

  bool take_message(int worker, MessageKind kind, const Action& action, double& ready) {
    const Message* message = messages_.find(kOneSlot, action.microbatch);
    if (message == nullptr || message->kind != kind || message->stage != action.stage) {
      queue_.await(worker, {kind, action.microbatch});
      return false;
    }
    ready = std::max(ready, message->arrival);
    messages_.erase(kOneSlot, action.microbatch);
    return true;
  }

  bool take_reductions(int worker, const Action& update, double& ready) {
    const auto stage = static_cast<size_t>(update.stage);
    Reduction* reduction = reductions_.find(stage, update.microbatch);
    if (reduction == nullptr || !is_complete(*reduction)) {
      queue_.await(worker, {MessageKind::Sum, update.stage});
      return false;
    }
    if (schedule_.sums_norms() && !take_norm(worker, update, ready)) return false;
    ready = std::max(ready, reduction->arrivals.at(update.pipeline));
    if (++reduction->taken == schedule_.shards()) reductions_.erase(stage, update.microbatch);
    return true;
  }

  // The norm by which the update clips is complete when the norms of all owners that it is taken over have come.
  bool take_norm(int worker, const Action& update, double& ready) {
    const int added_at = schedule_.norms_added_at(update.stage);
    const auto place = static_cast<size_t>(added_at);
    Norm* norm = norms_.find(place, update.microbatch);
    if (norm == nullptr || norm->owners < owners_of_norm()) {
      queue_.await(worker, {MessageKind::Sum, update.stage});
      return false;
    }
    ready = std::max(ready, norm->complete + costs_.latency(schedule_.owner[0][added_at], worker));
    if (++norm->taken == owners_of_norm()) norms_.erase(place, update.microbatch);
    return true;
  }
  int owners_of_norm() const { return schedule_.shards() * (schedule_.global_norm ? schedule_.stages : 1); }

  // A version is complete when all its shards are made.
  bool take_version(int worker, const Action& adopt, double& ready) {
    const auto stage = static_cast<size_t>(adopt.stage);
    Version* version = versions_.find(stage, adopt.microbatch);
    if (version == nullptr || version->shards < schedule_.shards()) {
      queue_.await(worker, {MessageKind::Version, adopt.stage});
      return false;
    }
    ready = std::max(ready, version->arrivals.at(adopt.pipeline));
    if (--version->awaited == 0) versions_.erase(stage, adopt.microbatch);
    return true;
  }

  void give_results(int worker, const Action& action, double end) {
    switch (action.kind) {
      case ActionKind::Forward:
        if (action.stage + 1 < schedule_.stages) send(MessageKind::Activation, worker, action, action.stage + 1, end);
        break;
      case ActionKind::Backward:
      case ActionKind::BackwardInput:
        if (action.stage > 0) send(MessageKind::Gradient, worker, action, action.stage - 1, end);
        if (action.kind == ActionKind::Backward) count_gradient(worker, action, end);
        break;
      case ActionKind::BackwardWeights:
        count_gradient(worker, action, end);
        break;
      case ActionKind::Update:
        send_version(worker, action, adopters_[static_cast<size_t>(action.stage)], end);
        if (is_tied_ && action.stage == 0) renew_tied_weights();
        break;
      case ActionKind::Adopt:
        if (is_tied_ && action.stage == 0) tied_[static_cast<size_t>(action.pipeline)].renewed = true;
        break;
    }
  }

  struct Adopter {
    int pipeline;
    int worker;
  };
  void send_version(int worker, const Action& update, const std::vector<Adopter>& adopters, double at) {
    if (adopters.empty()) return;
    const auto stage = static_cast<size_t>(update.stage);
    Version& version = versions_.at(stage, update.microbatch);
    version.awaited = std::ssize(adopters);
    ++version.shards;
    version.arrivals.all_at_least(at);
    for (const Adopter& to : adopters) {
      if (to.worker == worker) continue;
      const double arrival = costs_.arrival(MessageKind::Version, worker, to.worker, update.stage, at);
      version.arrivals.at_least(to.pipeline, arrival, schedule_.pipelines);
    }
    if (version.shards < schedule_.shards()) return;
    for (const Adopter& to : adopters) {
      if (to.worker != worker) queue_.wake(to.worker, {MessageKind::Version, update.stage});
    }
  }

  void send(MessageKind kind, int worker, const Action& action, int to_stage, double at) {
    const int to = schedule_.worker_of(action.pipeline, to_stage);
    const double arrival = to == worker ? at : costs_.arrival(kind, worker, to, action.stage, at);
    messages_.at(kOneSlot, action.microbatch) = {kind, to_stage, arrival};
    if (to != worker) queue_.wake(to, {kind, action.microbatch});
  }

  // The replica's last gradient of a window starts its sum on the way to the owners. An owner has everything when the
  // slowest replica's contribution has arrived. Parts of sums follow each other through a chain, so each contribution's
  // arrival is computed on its own, and the latest counts.
  void count_gradient(int worker, const Action& action, double end) {
    const bool is_last_of_tied = is_tied_ && action.stage + 1 == schedule_.stages;
    if (!has_sums(action.stage) && !is_last_of_tied) return;
    const int64_t window = action.microbatch / schedule_.window;
    const size_t place = slot(action.pipeline, action.stage);
    if (++gradient_counts_.at(place, window) < schedule_.microbatches_in_window(action.pipeline, window)) return;
    gradient_counts_.erase(place, window);
    if (is_last_of_tied) join_tied(worker, action.pipeline, window, tied_sum_arrival(worker, action, end));
    if (is_tied_ && action.stage == 0) {
      ++unsent_tied_[worker];
      join_tied(worker, action.pipeline, window, end);
    } else if (has_sums(action.stage)) {
      send_sum(worker, action, window, end);
    }
  }

  bool has_sums(int stage) const { return has_sums_[static_cast<size_t>(stage)]; }

  // Sends a replica's gradient of the window to the owners of its stage.
  void send_sum(int worker, const Action& action, int64_t window, double end) {
    Reduction& reduction = reductions_.at(static_cast<size_t>(action.stage), window);
    ++reduction.replicas;
    if (chains_.sends_to_owners(action.pipeline)) {
      for (int shard = 0; shard < schedule_.shards(); ++shard) {
        const int owner = schedule_.owner[shard][action.stage];
        const double arrival =
            owner == worker ? end : costs_.arrival(MessageKind::Sum, worker, owner, action.stage, end);
        reduction.arrivals.at_least(shard, arrival, schedule_.shards());
      }
    } else {
      const int next = chains_.next_worker(action.pipeline, action.stage);
      const int last = schedule_.worker_of(chains_.last(action.pipeline), action.stage);
      double arrival = costs_.arrival(MessageKind::Reduction, worker, next, action.stage, end);
      if (const int64_t hops = chains_.passed_on_by(action.pipeline); hops > 0) {
        arrival += static_cast<double>(hops) * costs_.passing_on(MessageKind::Reduction, action.stage);
      }
      for (int shard = 0; shard < schedule_.shards(); ++shard) {
        const bool is_there = schedule_.owner[shard][action.stage] == last;
        reduction.arrivals.at_least(shard, arrival + (is_there ? 0 : costs_.passing_on(MessageKind::Sum, action.stage)),
                                    schedule_.shards());
      }
    }
    if (!is_complete(reduction)) return;
    if (schedule_.sums_norms()) return send_norms(action.stage, window, reduction.arrivals);
    wake_owners(action.stage);
  }

  // Each owner of the stage sends the norm of its gradient, which is complete.
  void send_norms(int stage, int64_t window, const Arrivals& complete) {
    const int added_at = schedule_.norms_added_at(stage);
    const int adds = schedule_.owner[0][added_at];
    Norm& norm = norms_.at(static_cast<size_t>(added_at), window);
    for (int shard = 0; shard < schedule_.shards(); ++shard) {
      const double arrival = complete.at(shard) + costs_.latency(schedule_.owner[shard][stage], adds);
      norm.complete = std::max(norm.complete, arrival);
    }
    norm.owners += schedule_.shards();
    if (norm.owners < owners_of_norm()) return;
    if (!schedule_.global_norm) return wake_owners(stage);
    for (int other = 0; other < schedule_.stages; ++other) wake_owners(other);
  }

  void wake_owners(int stage) {
    for (const auto& owner : schedule_.owner) queue_.wake(owner[stage], {MessageKind::Sum, stage});
  }

  // The first stage's forward sends the tied weight if it has changed. The last stage's forward of the same microbatch
  // waits for it; the last stage takes microbatches in the first stage's order.
  void send_tied_weight(int worker, const Action& forward, double at) {
    Tied& tied = tied_[static_cast<size_t>(forward.pipeline)];
    if (!std::exchange(tied.renewed, false)) return;
    const int to = schedule_.worker_of(forward.pipeline, schedule_.stages - 1);
    const double arrival = to == worker ? at : costs_.arrival(MessageKind::TiedWeight, worker, to, 0, at);
    tied.weights.push_back({forward.microbatch, arrival});
  }
  void take_tied_weight(const Action& forward, double& ready) {
    auto& weights = tied_[static_cast<size_t>(forward.pipeline)].weights;
    if (weights.empty() || weights.front().microbatch != forward.microbatch) return;
    ready = std::max(ready, weights.front().arrival);
    weights.pop_front();
  }
  // Marks the pipelines whose version changes at the owner's update.
  void renew_tied_weights() {
    for (const int pipeline : without_adoptions_) tied_[static_cast<size_t>(pipeline)].renewed = true;
  }
  double tied_sum_arrival(int worker, const Action& action, double end) {
    const int to = schedule_.worker_of(action.pipeline, 0);
    return to == worker ? end : costs_.arrival(MessageKind::TiedSum, worker, to, action.stage, end);
  }
  // Joins the gradients that the first and the last stage have of a tied weight. When both are there, the first stage
  // sends its sum on: at the end of the action that completes it, or when the last stage's gradient comes.
  void join_tied(int worker, int pipeline, int64_t window, double at) {
    TiedSum& sum = tied_sums_.at(static_cast<size_t>(pipeline), window);
    sum.complete = std::max(sum.complete, at);
    if (++sum.parts < 2) return;
    const double complete = sum.complete;
    tied_sums_.erase(static_cast<size_t>(pipeline), window);
    const int first = schedule_.worker_of(pipeline, 0);
    const Action gradient{ActionKind::Backward, pipeline, 0, window * schedule_.window};
    if (worker != first || complete > at) return steps_.plan({Step::SendTiedSum, first, gradient, complete});
    send_tied_sum(first, gradient, complete);
  }
  void send_tied_sum(int worker, const Action& gradient, double at) {
    --unsent_tied_[worker];
    send_sum(worker, gradient, gradient.microbatch / schedule_.window, at);
  }

  const Schedule& schedule_;
  Costs& costs_;
  Visit& visit_;
  ReductionChains chains_;
  bool is_tied_;  // a weight is shared by two different stages
  // A message to the stage that does the microbatch's next forward or backward. A microbatch has at most one at a time,
  // so there are at most as many as microbatches in flight, however many replicas they pass.
  struct Message {
    MessageKind kind = MessageKind::Activation;
    int stage = 0;  // the receiver
    double arrival = 0;
  };
  static constexpr size_t kOneSlot = 0;
  RingMap<Message> messages_;         // by microbatch
  std::vector<bool> has_sums_;        // [stage]
  RingMap<int64_t> gradient_counts_;  // by replica and window
  struct Reduction {
    int64_t replicas = 0;  // that have sent their gradients to the owners
    int taken = 0;         // number of owners that have taken it
    Arrivals arrivals;     // [shard]
  };
  RingMap<Reduction> reductions_;  // by stage and window
  // An update waits for every replica that has a microbatch in the window. That is all of them, unless the window has
  // fewer microbatches than there are pipelines.
  bool is_complete(const Reduction& reduction) const {
    return reduction.replicas >= std::min<int64_t>(schedule_.pipelines, schedule_.window);
  }
  // The norm by which some or all owners clip.
  struct Norm {
    int owners = 0;       // whose norms are in it
    int taken = 0;        // number of owners that have taken it
    double complete = 0;  // when the last of them comes to where they are added
  };
  RingMap<Norm> norms_;  // by the stage where they are added, and window
  struct TiedWeight {
    int64_t microbatch = 0;  // the first one that reads it
    double arrival = 0;
  };
  struct Tied {
    bool renewed = true;             // whether the version changed since the first stage's last forward
    std::deque<TiedWeight> weights;  // sent, and not yet read
  };
  struct TiedSum {
    int parts = 0;
    double complete = 0;
  };
  std::vector<Tied> tied_;                      // [pipeline]
  std::vector<int> without_adoptions_;          // pipelines; only if a weight is tied
  RingMap<TiedSum> tied_sums_;                  // by pipeline and window
  std::vector<int> unsent_tied_;                // [worker]: windows whose first-stage gradients it has not sent on yet
  std::vector<std::vector<Adopter>> adopters_;  // [stage]: the replicas that adopt its updates
  // A version on its way to all adopters.
  struct Version {
    int64_t awaited = 0;  // number of adopters that have not taken it yet
    int shards = 0;       // number of shards made so far
    Arrivals arrivals;    // [pipeline]
  };
  RingMap<Version> versions_;  // by stage and window
  int64_t limit_;              // microbatches
  std::vector<double> free_at_;
  std::vector<ProgramCursor> cursors_;
  WorkerQueue queue_;
  StepQueue steps_;  // of workers that have a tied sum to send
};

}  // namespace gyre
