// Every single mistake in a valid schedule's programs is refused, and the error names the action and its worker.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/schedule/builders.h"
#include "gyre/schedule/compute_costs.h"
#include "gyre/schedule/csv.h"
#include "gyre/schedule/load.h"
#include "gyre/schedule/text.h"
#include "gyre/schedule/validate.h"
#include "schedule/refusal.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing_support::refusal;

// The first line of the error, which says what is wrong, or "accepted".
std::string fault_of(const Schedule& schedule) {
  try {
    validate(schedule);
  } catch (const InputError& error) {
    const std::string what = error.what();
    return what.substr(0, what.find('\n'));
  }
  return "accepted";
}

// An action of a period may be named as it is in another repetition.
Action in_first_repetition(Action action, const Schedule& schedule) {
  action.microbatch %= action.is_per_window() ? schedule.shift / schedule.window : schedule.shift;
  return action;
}

bool names_one_of(const std::string& fault, const std::vector<Action>& actions, const Schedule& schedule) {
  static const std::regex kAction("\\b([0-9]+:)?[0-9]+[FBIWUA][0-9]+\\b");
  std::set<Action> named;
  for (std::sregex_iterator word(fault.begin(), fault.end(), kAction), end; word != end; ++word) {
    named.insert(in_first_repetition(parse_action(word->str(), schedule.pipelines), schedule));
  }
  return std::any_of(actions.begin(), actions.end(),
                     [&](const Action& action) { return named.contains(in_first_repetition(action, schedule)); });
}

class Mutations {
 public:
  explicit Mutations(const Schedule& schedule) : schedule_(schedule) {}

  void try_all() {
    for (worker_ = 0; worker_ < schedule_.workers; ++worker_) {
      try_all(&Program::prologue);
      try_all(&Program::period);
    }
    EXPECT_GT(swaps_refused_, 0) << to_text(schedule_);
  }

 private:
  using Actions = std::vector<Action> Program::*;

  void try_all(Actions where) {
    const std::vector<Action>& actions = schedule_.programs[worker_].*where;
    for (size_t i = 0; i < actions.size(); ++i) {
      const Action original = actions[i];
      refuses("drop", where, {original}, [&](auto& list) { list.erase(list.begin() + static_cast<ptrdiff_t>(i)); });
      refuses("duplicate", where, {original},
              [&](auto& list) { list.insert(list.begin() + static_cast<ptrdiff_t>(i), original); });
      const auto refuses_instead = [&](const char* what, const Action& wrong) {
        refuses(what, where, {original, wrong}, [&](auto& list) { list[i] = wrong; });
      };
      Action wrong = original;
      wrong.stage = (original.stage + 1) % schedule_.stages;
      refuses_instead("wrong stage", wrong);
      wrong.stage = schedule_.stages;
      refuses_instead("stage that is not there", wrong);
      wrong = original;
      wrong.microbatch += 1;
      refuses_instead("wrong microbatch", wrong);
      wrong.microbatch = original.microbatch + schedule_.shift;
      refuses_instead("later repetition's microbatch", wrong);
      wrong = original;
      wrong.kind = original.kind == ActionKind::Forward ? ActionKind::Backward : ActionKind::Forward;
      refuses_instead("wrong kind", wrong);
      if (original.kind == ActionKind::Backward) {
        wrong.kind = ActionKind::BackwardInput;
        refuses_instead("input half alone", wrong);
        wrong.kind = ActionKind::BackwardWeights;
        refuses_instead("weight half alone", wrong);
      }
      if (schedule_.pipelines > 1) {
        wrong = original;
        wrong.pipeline = (original.pipeline + 1) % schedule_.pipelines;
        refuses_instead("wrong pipeline", wrong);
      }
      for (size_t j = i + 1; j < actions.size(); ++j) try_swap(where, i, j);
    }
  }

  template <typename Mutate>
  void refuses(const char* what, Actions where, const std::vector<Action>& mutated, const Mutate& mutate) const {
    Schedule broken = schedule_;
    mutate(broken.programs[worker_].*where);
    const std::string fault = fault_of(broken);
    const std::string name = to_string(mutated[0], schedule_.pipelines);
    EXPECT_TRUE(names_one_of(fault, mutated, schedule_))
        << what << " of " << name << " on worker " << worker_ << ": " << fault << "\n"
        << to_text(broken);
    EXPECT_THAT(fault, HasSubstr(fmt::format("worker {}", worker_))) << what << " of " << name;
  }

  // Many swaps only change the order in which the work is done.
  void try_swap(Actions where, size_t i, size_t j) {
    Schedule swapped = schedule_;
    std::vector<Action>& actions = swapped.programs[worker_].*where;
    std::swap(actions[i], actions[j]);
    const std::string fault = fault_of(swapped);
    const bool accepted = fault == "accepted";
    EXPECT_FALSE(accepted && needs(actions[i], actions[j])) << to_text(swapped);
    if (accepted) return;
    ++swaps_refused_;
    EXPECT_TRUE(names_one_of(fault, {actions[i], actions[j]}, schedule_))
        << "swap of " << i << " and " << j << " on worker " << worker_ << ": " << fault << "\n"
        << to_text(swapped);
  }

  // Whether `later` cannot be done before `first`; both are in the same repetition on the same worker.
  bool needs(const Action& later, const Action& first) const {
    if (later.stage != first.stage) return false;
    const bool same_microbatch = later.pipeline == first.pipeline && later.microbatch == first.microbatch;
    switch (later.kind) {
      case ActionKind::Backward:
      case ActionKind::BackwardInput:
        return first.kind == ActionKind::Forward && same_microbatch;
      case ActionKind::BackwardWeights:
        return first.kind == ActionKind::BackwardInput && same_microbatch;
      case ActionKind::Update:
        return (first.kind == ActionKind::Backward || first.kind == ActionKind::BackwardWeights) &&
               first.microbatch / schedule_.window == later.microbatch;
      case ActionKind::Adopt:
        return first.kind == ActionKind::Update && first.microbatch == later.microbatch;
      case ActionKind::Forward:
        return false;
    }
    return false;
  }

  const Schedule schedule_;
  int worker_ = 0;
  int swaps_refused_ = 0;
};

class EveryMutation : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryMutation, IsRefusedAndNamed) {
  int tried = 0;
  for (const auto& [stages, window] : {std::pair{2, 3}, {3, 3}, {2, 4}, {3, 4}, {4, 4}, {4, 6}}) {
    for (const int replicas : {1, 2}) {
      const ScheduleOptions options{.name = GetParam(), .stages = stages, .window = window, .replicas = replicas};
      if (refusal(options) != "no error" || (stages == 4 && replicas == 2)) continue;
      Mutations(make_schedule(options)).try_all();
      ++tried;
    }
  }
  EXPECT_GE(tried, 2);
}

INSTANTIATE_TEST_SUITE_P(Builtin, EveryMutation, ::testing::ValuesIn(schedule_names()));

// A microbatch passes the workers from the last to the first, two stages on each, and ends on the last again. A worker
// does it at the first of its two stages a repetition earlier than at the second, so the worker that it comes from must
// be a repetition ahead, and the last worker six ahead of the first. `ahead`: how many forwards the last stage is ahead
// of its backwards; from 5 on it waits for what its worker does in a later repetition.
Schedule whose_workers_run_ahead(int64_t ahead) {
  constexpr int kWorkers = 7, kLast = 2 * kWorkers - 2;
  constexpr int64_t kAhead = 9;  // as many forwards is a worker's second stage ahead; its first one more
  const auto worker_of = [](int stage) { return stage == kLast ? kWorkers - 1 : kWorkers - 1 - (stage + 1) / 2; };
  Schedule schedule;
  schedule.name = "ahead";
  schedule.stages = kLast + 1;
  schedule.workers = kWorkers;
  schedule.placement.resize(1);
  for (int stage = 0; stage <= kLast; ++stage) schedule.placement[0].push_back(worker_of(stage));
  schedule.owner = schedule.placement;
  for (int worker = 0; worker < kWorkers; ++worker) {
    std::vector<int> own;
    for (int stage = 0; stage <= kLast; ++stage) {
      if (worker_of(stage) == worker) own.push_back(stage);
    }
    const auto is_first = [](int stage) { return stage % 2 == 1; };
    const auto forwards = [&](int stage) { return stage == kLast ? ahead : is_first(stage) ? kAhead + 1 : kAhead; };
    Program program;
    const auto backwards = [&](int64_t m, std::vector<Action>& actions) {
      for (size_t i = own.size(); i-- > 0;) actions.push_back({ActionKind::Backward, 0, own[i], m});
    };
    const auto updates = [&](int64_t m, std::vector<Action>& actions) {
      for (const int stage : own) actions.push_back({ActionKind::Update, 0, stage, m});
    };
    for (const int stage : own) {
      for (int64_t m = 0; m < std::min(forwards(stage), kAhead); ++m) {
        program.prologue.push_back({ActionKind::Forward, 0, stage, m});
      }
    }
    const int64_t done = kWorkers - 1 - worker;  // microbatches in the prologue
    for (int64_t m = 0; m < done; ++m) {
      if (m == done - 1) program.prologue.push_back({ActionKind::Forward, 0, own[0], kAhead});
      backwards(m, program.prologue);
      updates(m, program.prologue);
    }
    for (const int stage : own) {
      if (stage < kLast) program.period.push_back({ActionKind::Forward, 0, stage, forwards(stage)});
    }
    backwards(done, program.period);
    if (worker == kWorkers - 1) program.period.push_back({ActionKind::Forward, 0, kLast, ahead});
    updates(done, program.period);
    schedule.programs.push_back(std::move(program));
  }
  return schedule;
}

// A circle may need more microbatches than the prologues and a few repetitions have.
TEST(Deadlock, IsFoundWhereOnlyLongRunsHaveIt) {
  const Schedule good = whose_workers_run_ahead(4), bad = whose_workers_run_ahead(5);
  EXPECT_EQ(fault_of(good), "accepted");
  EXPECT_GT(makespan(good, 1000, ComputeCosts()), 0);
  EXPECT_GT(makespan(bad, representative_microbatches(bad), ComputeCosts()), 0);
  EXPECT_THROW(makespan(bad, 15, ComputeCosts()), Deadlock);
  EXPECT_THAT(fault_of(bad), HasSubstr("deadlock: it needs "));
}

// Worker 0 only waits for those who wait for each other.
TEST(Deadlock, ShowsTheCircle) {
  Schedule schedule = make_schedule({"gpipe", 3, 2});
  const auto a = [](const char* text) { return parse_action(text, 1); };
  schedule.programs[1].period = {a("1F0"), a("1B0"), a("1F1"), a("1B1"), a("1U0")};
  EXPECT_EQ(fault_of(schedule),
            "schedule gpipe: 1B0 on worker 1: deadlock: it needs 2B0, but worker 2 is at 2F1, which needs 1F1");
}

// The line is that of the worker's program.
TEST(Files, AreNamedWithTheLineOfAFault) {
  const testing_support::TemporaryDirectory directory;
  const auto fault = [&](const std::string& name, const std::string& text) {
    const std::string file = (directory.path() / name).string();
    std::ofstream(file) << text;
    try {
      load_schedule({file, 2, 2}, false);
    } catch (const InputError& error) {
      const std::string what = error.what();
      EXPECT_THAT(what, StartsWith(file)) << what;
      return what.substr(file.size(), what.find('\n') - file.size());
    }
    return std::string("accepted");
  };
  const auto changed = [](std::string text, const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::string text = to_text(make_schedule({"1f1b", 2, 2}));
  EXPECT_EQ(fault("a.sched", text), "accepted");
  EXPECT_EQ(fault("a.sched", changed(text, "worker 1: 1F0", "worker 1: 0F0")),
            ":13: 0F0 on worker 1: the placement says worker 0");
  EXPECT_EQ(fault("a.sched", changed(text, "worker 0:", "# worker 1: 1F0\n\n worker 0: 0F0")),
            ":14: 0F0 on worker 0: is there twice");
  EXPECT_EQ(fault("a.sched", changed(text, "1F0 1B0", "1B0 1F0")),
            ":13: 1B0 on worker 1: deadlock: it needs 1F0, which this worker does later or never");
  EXPECT_EQ(fault("a.sched", changed(text, "owner 0 1", "owner 0 1\nowner 1 0")),
            ": updates are in 2 shards, and there are 1 pipelines; give at most an owner line for each");
  EXPECT_EQ(fault("a.sched", changed(text, "worker 0: 0F0", "worker 0:0F0")), "accepted");
  EXPECT_EQ(fault("a.sched", changed(text, "stages 2", "stages\t2")), "accepted");
  EXPECT_EQ(fault("a.sched", changed(text, "stages 2", "stages2")), ":3: expected 'stages', found 'stages2'");
  EXPECT_EQ(fault("a.sched", "\xef\xbb\xbf" + text), "accepted") << "as editors of Windows write it";
  const std::string csv = to_csv(make_schedule({"1f1b", 2, 2}), 2);
  EXPECT_EQ(fault("a.csv", csv), "accepted");
  EXPECT_EQ(fault("a.csv", "\xef\xbb\xbf" + csv), "accepted") << "as spreadsheets write it";
  EXPECT_EQ(fault("a.csv", changed(csv, "1B1", "")),
            ":2: 1B1 on worker 1: is missing from the period, which is for 2 microbatches");
}

}  // namespace
}  // namespace gyre
