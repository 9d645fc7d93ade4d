// The timeline against a simulation of the same rules that goes through time event by event: random schedules, of tied
// models and of others, on links that are slow enough for messages to queue.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "gyre/schedule/builders.h"
#include "gyre/schedule/data_parallel.h"
#include "gyre/schedule/reduction_chains.h"
#include "gyre/schedule/text.h"
#include "gyre/schedule/validate.h"
#include "gyre/simulate/simulator.h"
#include "random_schedules.h"

namespace gyre {
namespace {

// A worker starts its next action as soon as all that it needs is there. A link sends what is given to it in the order
// in which that happens. For schedules whose updates are not in shards.
class EventSimulation {
 public:
  EventSimulation(const Schedule& schedule, const CostModel& costs, int64_t microbatches)
      : schedule_(schedule),
        costs_(costs),
        chains_(schedule),
        idle_(static_cast<size_t>(schedule.workers), true),
        adopts_(adopting_pipelines(schedule)) {
    for (int worker = 0; worker < schedule.workers; ++worker) programs_.emplace_back(schedule, worker, microbatches);
    for (int pipeline = 0; pipeline < schedule.pipelines; ++pipeline) renewed_.insert(pipeline);
  }

  // [worker, action]: its start.
  std::map<std::pair<int, std::string>, double> run() {
    for (int worker = 0; worker < schedule_.workers; ++worker) go_on(worker);
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      event.happen();
    }
    return std::move(starts_);
  }

 private:
  struct Event {
    double time;
    int number;  // in the order in which they were planned
    std::function<void()> happen;
    bool operator<(const Event& other) const { return std::tie(time, number) > std::tie(other.time, other.number); }
  };
  // What has come: a kind of message, a pipeline, a stage and the number of a microbatch or window.
  using Item = std::tuple<MessageKind, int, int, int64_t>;

  bool is_tied() const { return schedule_.tied && schedule_.stages > 1; }
  int last() const { return schedule_.stages - 1; }
  void at(double time, std::function<void()> happen) { events_.push({time, ++events_planned_, std::move(happen)}); }

  void go_on(int worker) {
    ProgramCursor& program = programs_[static_cast<size_t>(worker)];
    if (!idle_[static_cast<size_t>(worker)] || !program.peek()) return;
    const Action action = *program.peek();
    if (!has_needs(action)) return;
    idle_[static_cast<size_t>(worker)] = false;
    starts_[{worker, to_string(action, schedule_.pipelines)}] = now_;
    if (is_tied() && action.kind == ActionKind::Forward && action.stage == 0) send_tied_weight(worker, action);
    at(now_ + costs_.duration(action), [this, worker, action] {
      end(worker, action);
      programs_[static_cast<size_t>(worker)].advance();
      idle_[static_cast<size_t>(worker)] = true;
      go_on(worker);
    });
  }

  bool has_needs(const Action& action) {
    const auto& [kind, pipeline, stage, number] = action;
    const auto has = [&](MessageKind message, int of) {
      return come_.contains({message, of, action.stage, action.microbatch});
    };
    switch (kind) {
      case ActionKind::Forward:
        if (stage > 0 && !has(MessageKind::Activation, pipeline)) return false;
        return !is_tied() || stage < last() || !sent_weights_.contains(number) ||
               has(MessageKind::TiedWeight, pipeline);
      case ActionKind::Backward:
      case ActionKind::BackwardInput:
        return stage == last() || has(MessageKind::Gradient, pipeline);
      case ActionKind::BackwardWeights:
        return true;
      case ActionKind::Update:
        return sums_[{stage, number}] == std::min<int64_t>(schedule_.pipelines, schedule_.window);
      case ActionKind::Adopt:
        return has(MessageKind::Version, pipeline);
    }
    return false;
  }

  void end(int worker, const Action& action) {
    const auto& [kind, pipeline, stage, number] = action;
    const auto pass_to = [&](int to, MessageKind message) {
      send(message, worker, schedule_.worker_of(action.pipeline, to), action.stage,
           {message, action.pipeline, to, action.microbatch});
    };
    if (kind == ActionKind::Forward && stage < last()) pass_to(stage + 1, MessageKind::Activation);
    if ((kind == ActionKind::Backward || kind == ActionKind::BackwardInput) && stage > 0) {
      pass_to(stage - 1, MessageKind::Gradient);
    }
    if (kind == ActionKind::Backward || kind == ActionKind::BackwardWeights) count_gradient(worker, action);
    if (kind == ActionKind::Update) {
      for (int other = 0; other < schedule_.pipelines; ++other) {
        if (adopts_[static_cast<size_t>(other)]) {
          send(MessageKind::Version, worker, schedule_.worker_of(other, stage), stage,
               {MessageKind::Version, other, stage, number});
        } else if (stage == 0) {
          renewed_.insert(other);
        }
      }
    }
    if (kind == ActionKind::Adopt && stage == 0) renewed_.insert(pipeline);
  }

  void count_gradient(int worker, const Action& action) {
    const auto& [kind, pipeline, stage, number] = action;
    const int64_t window = number / schedule_.window;
    if (++gradients_[{pipeline, stage, window}] < schedule_.microbatches_in_window(pipeline, window)) return;
    if (is_tied() && stage == last()) {
      arrive(MessageKind::TiedSum, worker, schedule_.worker_of(pipeline, 0), stage,
             [this, pipeline = pipeline, window] { join_tied(pipeline, window); });
    }
    if (is_tied() && stage == 0) {
      join_tied(pipeline, window);
    } else {
      send_sum(pipeline, stage, window);
    }
  }
  void join_tied(int pipeline, int64_t window) {
    if (++tied_parts_[{pipeline, window}] == 2) send_sum(pipeline, 0, window);
  }

  void send_sum(int pipeline, int stage, int64_t window) {
    const int from = schedule_.worker_of(pipeline, stage), owner = schedule_.owner[0][static_cast<size_t>(stage)];
    const auto came = [this, stage, window, owner] {
      ++sums_[{stage, window}];
      go_on(owner);
    };
    if (chains_.sends_to_owners(pipeline)) return arrive(MessageKind::Sum, from, owner, stage, came);
    const auto passed_on = [&](MessageKind kind, int64_t times) {
      const auto bytes = static_cast<double>(costs_.message_bytes(kind, stage));
      return static_cast<double>(times) * (costs_.link.latency + bytes / costs_.link.bandwidth);
    };
    double later = passed_on(MessageKind::Reduction, chains_.passed_on_by(pipeline));
    if (schedule_.worker_of(chains_.last(pipeline), stage) != owner) later += passed_on(MessageKind::Sum, 1);
    arrive(MessageKind::Reduction, from, chains_.next_worker(pipeline, stage), stage,
           [this, later, came] { at(now_ + later, came); });
  }

  void send_tied_weight(int worker, const Action& forward) {
    if (renewed_.erase(forward.pipeline) == 0) return;
    sent_weights_.insert(forward.microbatch);
    send(MessageKind::TiedWeight, worker, schedule_.worker_of(forward.pipeline, last()), 0,
         {MessageKind::TiedWeight, forward.pipeline, last(), forward.microbatch});
  }

  void send(MessageKind kind, int from, int to, int stage, const Item& item) {
    arrive(kind, from, to, stage, [this, to, item] {
      come_.insert(item);
      go_on(to);
    });
  }
  // Sends a message now.
  void arrive(MessageKind kind, int from, int to, int stage, const std::function<void()>& come) {
    if (from == to) return come();
    double& free_at = links_[{from, to}];
    free_at = std::max(free_at, now_) + static_cast<double>(costs_.message_bytes(kind, stage)) / costs_.link.bandwidth;
    at(free_at + costs_.link.latency, come);
  }

  const Schedule& schedule_;
  const CostModel& costs_;
  ReductionChains chains_;
  double now_ = 0;
  int events_planned_ = 0;
  std::priority_queue<Event> events_;
  std::vector<ProgramCursor> programs_;
  std::vector<bool> idle_;
  std::set<Item> come_;
  std::map<std::pair<int, int>, double> links_;                 // [from, to]: when it has sent everything so far
  std::map<std::tuple<int, int, int64_t>, int64_t> gradients_;  // [pipeline, stage, window]
  std::map<std::pair<int, int64_t>, int> tied_parts_;           // [pipeline, window]
  std::map<std::pair<int, int64_t>, int64_t> sums_;             // [stage, window]: those that the owner has
  std::vector<bool> adopts_;                                    // [pipeline]
  std::set<int> renewed_;                                       // pipelines with a new version since the last forward
  std::set<int64_t> sent_weights_;                              // the microbatches that read them first
  std::map<std::pair<int, std::string>, double> starts_;
};

void expect_same(const Schedule& schedule, const CostModel& costs, int64_t microbatches) {
  const Simulation simulation = simulate(schedule, costs, {.microbatches = microbatches, .trace = true});
  const auto starts = EventSimulation(schedule, costs, microbatches).run();
  size_t actions = 0;
  for (int worker = 0; worker < schedule.workers; ++worker) {
    for (const TimedAction& timed : simulation.trace[static_cast<size_t>(worker)]) {
      const std::string action = to_string(timed.action, schedule.pipelines);
      const auto found = starts.find({worker, action});
      ASSERT_NE(found, starts.end()) << action;
      ASSERT_NEAR(timed.start, found->second, 1e-6) << action << "\n" << to_text(schedule) << to_json(costs);
      ++actions;
    }
  }
  EXPECT_EQ(actions, starts.size());
}

void compare_random(int draws, unsigned seed) {
  RandomSchedules random(seed);
  int tied = 0;
  for (int draw = 0; draw < draws && !testing::Test::HasFatalFailure(); ++draw) {
    SCOPED_TRACE(fmt::format("draw {}", draw));
    const Schedule schedule = random.schedule();
    const CostModel costs = random.costs(schedule.stages);
    if (schedule.tied) ++tied;
    expect_same(schedule, costs, 2 * schedule.shift);
    if (random.between(0, 4) > 0) continue;
    const Schedule copies = replicated(schedule, 2, /*shard_optimizer=*/false);
    expect_same(copies, costs, 2 * copies.shift);
  }
  EXPECT_GT(tied, draws / 4);
}

// The last stages' gradients take 10 on their way. Each of the two workers goes on meanwhile, and what it sends then is
// not kept behind the first stage's sum, which can only be sent later.
TEST(EventSimulation, ATiedSumThatIsNotCompleteKeepsNothingWaiting) {
  Schedule schedule = parse_schedule(R"(gyre-schedule 1
name x
stages 2
pipelines 2
workers 2
window 2
shift 2
kind training
weights stash
placement 0 1
placement 1 0
owner 1 0
worker 0: 0:0F0 1:1F1 0:0B0 1:1B1 0:1U0 0:0A0
worker 1: 1:0F1 0:1F0 0:1B0 1:0B1 0:0U0 0:1A0
)",
                                     "x");
  schedule.tied = true;
  ASSERT_NO_THROW(validate(schedule));
  CostModel costs = uniform_costs(2);
  costs.link.bandwidth = 1;
  costs.stages.resize(2, costs.stages[0]);
  costs.stages[0].gradient_bytes = 5;
  costs.stages[1].tied_bytes = 10;
  const Simulation s = simulate(schedule, costs, {.microbatches = 2, .trace = true});
  ASSERT_EQ(s.trace[1][3].action, parse_action("1:0B1", 2));
  // 1:1B1 ends at 8 and sends its gradient, then until 18 the tied one. Pipeline 0's tied gradient has come at 14, and
  // its sum goes from 18 to 23.
  EXPECT_EQ(s.trace[1][3].start, 8);
  EXPECT_EQ(s.makespan, 23);
  expect_same(schedule, costs, 2);
}

TEST(EventSimulation, OfRandomSchedulesGivesTheSameTimes) {
  compare_random(1000, 1);
}
TEST(EventSimulation, SlowOfManyRandomSchedulesGivesTheSameTimes) {
  compare_random(100'000, 2);
}

TEST(EventSimulation, OfBuiltinSchedulesGivesTheSameTimes) {
  RandomSchedules random(3);
  for (const std::string& name : schedule_names()) {
    for (const int stages : {2, 4}) {
      for (const int replicas : {1, 3}) {
        for (const bool tied : {false, true}) {
          SCOPED_TRACE(fmt::format("{} {} {} {}", name, stages, replicas, tied));
          const Schedule schedule = make_schedule({.name = name,
                                                   .stages = stages,
                                                   .window = 4,
                                                   .replicas = replicas,
                                                   .shard_optimizer = false,
                                                   .tied = tied});
          for (int draw = 0; draw < 5; ++draw) expect_same(schedule, random.costs(stages), 3 * schedule.shift);
        }
      }
    }
  }
}

}  // namespace
}  // namespace gyre
