// Schedules of tied models: what the weight shared by the first and the last stage requires of an order, and what its
// messages cost in time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/schedule/builders.h"
#include "gyre/schedule/compute_costs.h"
#include "gyre/schedule/delay.h"
#include "gyre/schedule/validate.h"

namespace gyre {
namespace {

using ::testing::HasSubstr;

std::string refusal_of(const Schedule& schedule) {
  try {
    validate(schedule);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::vector<ScheduleOptions> every_schedule() {
  std::vector<ScheduleOptions> all;
  for (const std::string& name : schedule_names()) {
    for (const int stages : {2, 4, 6}) {
      for (const int64_t window : {1, 4, 12}) {
        for (const int replicas : {1, 2}) {
          all.push_back({.name = name, .stages = stages, .window = window, .replicas = replicas, .tied = true});
        }
      }
    }
  }
  return all;
}

// A builtin schedule serves a tied model as it is, and no action's delay changes.
TEST(Tied, EveryBuiltinScheduleIsValid) {
  int valid = 0;
  for (ScheduleOptions options : every_schedule()) {
    Schedule schedule;
    try {
      schedule = make_schedule(options);
    } catch (const InputError&) {
      continue;  // the schedule does not serve this depth or window
    }
    ++valid;
    EXPECT_EQ(refusal_of(schedule), "no error") << options.name << " " << options.stages << " " << options.window;
    EXPECT_GT(makespan(schedule, 4 * schedule.shift, ComputeCosts()), 0);  // no deadlock in time either
    options.tied = false;
    EXPECT_EQ(longest_delays(schedule).delay, longest_delays(make_schedule(options)).delay);
  }
  EXPECT_GT(valid, 60);
}

// The last stage reads the version that its newest message brought.
TEST(Tied, TheLastStageKeepsTheFirstOnesOrder) {
  Schedule schedule = make_schedule({"gpipe", 2, 2});
  std::swap(schedule.programs[1].period[0], schedule.programs[1].period[1]);  // 1F1 before 1F0
  EXPECT_EQ(refusal_of(schedule), "no error");
  schedule.tied = true;
  EXPECT_THAT(refusal_of(schedule), HasSubstr("1F1 on worker 1: the first stage forwarded 0F0 before it"));
}

// A weight half that the last stage postpones until the next window has begun is too late for a shared weight.
TEST(Tied, AnUpdateWaitsForTheLastStagesGradients) {
  Schedule schedule = make_schedule({"gpipe", 2, 1});
  const auto a = [](const char* text) { return parse_action(text, 1); };
  schedule.programs[0].period = {a("0F0"), a("0B0"), a("0U0")};
  schedule.programs[1].prologue = {a("1F0"), a("1I0")};
  schedule.programs[1].period = {a("1F1"), a("1I1"), a("1W0"), a("1U0")};
  EXPECT_EQ(refusal_of(schedule), "no error");
  schedule.tied = true;
  EXPECT_THAT(refusal_of(schedule), HasSubstr("deadlock"));
  EXPECT_THROW(makespan(schedule, 8, ComputeCosts()), Deadlock);
}

// Counts messages and delays those of the tied weight.
struct Slow : ComputeCosts {
  double arrival(MessageKind kind, int, int, int, double at) {
    ++(*count)[kind];
    return at + (kind == MessageKind::TiedWeight ? weight : kind == MessageKind::TiedSum ? sum : 0);
  }
  double weight = 0, sum = 0;
  std::map<MessageKind, int>* count = nullptr;
};

TEST(Tied, MessagesAreCountedAndTimed) {
  for (const ScheduleOptions& options :
       {ScheduleOptions{.name = "1f1b", .stages = 4, .window = 4, .tied = true},
        ScheduleOptions{.name = "pipedream", .stages = 4, .window = 1, .tied = true},
        ScheduleOptions{.name = "pipedream-2bw", .stages = 4, .window = 4, .tied = true},
        ScheduleOptions{.name = "amdp", .stages = 4, .window = 8, .tied = true},
        ScheduleOptions{.name = "pipedream", .stages = 3, .window = 2, .replicas = 2, .tied = true},
        // The first replica changes at the updates, the other adopts.
        ScheduleOptions{
            .name = "pipedream", .stages = 3, .window = 2, .replicas = 2, .shard_optimizer = false, .tied = true}}) {
    const Schedule schedule = make_schedule(options);
    const int64_t windows = 6, microbatches = windows * schedule.window;
    const auto run = [&](double weight, double sum) {
      std::map<MessageKind, int> count;
      Slow costs;
      costs.weight = weight;
      costs.sum = sum;
      costs.count = &count;
      std::map<std::tuple<char, int, int, int64_t>, double> starts;
      const auto visit = [&](int, const Action& action, double start, double) {
        starts[{static_cast<char>(action.kind), action.pipeline, action.stage, action.microbatch}] = start;
      };
      Timeline(schedule, microbatches, costs, visit).run();
      return std::pair(count, starts);
    };
    const auto [count, free] = run(0, 0);
    // Each window has one gradient from each pipeline; each version has one message to each pipeline that reads it.
    EXPECT_EQ(count.at(MessageKind::TiedSum), windows * schedule.pipelines) << options.name;
    EXPECT_LE(count.at(MessageKind::TiedWeight), windows * schedule.pipelines) << options.name;
    EXPECT_GE(count.at(MessageKind::TiedWeight), schedule.pipelines) << options.name;

    // The first forward of the last stage waits for the weight, and the first update of the first stage for the sum.
    const auto slow_weight = run(1000, 0).second, slow_sum = run(0, 1000).second;
    EXPECT_GE(slow_weight.at({'F', 0, schedule.stages - 1, 0}), 1000) << options.name;
    EXPECT_GE(slow_sum.at({'U', 0, 0, 0}), 1000) << options.name;
    EXPECT_LT(free.at({'U', 0, 0, 0}), 100) << options.name;
    EXPECT_LT(free.at({'F', 0, schedule.stages - 1, 0}), 100) << options.name;
  }
}

}  // namespace
}  // namespace gyre
