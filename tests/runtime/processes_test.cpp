// The executor `processes`: its bits are those of replay, and rank 0's commands and questions reach all ranks.
#include "gyre/runtime/processes_executor.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>

#include "gyre/core/error.h"
#include "gyre/runtime/evaluate.h"
#include "member.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using namespace testing_support;

struct WholeOutcome {
  Recorder recorder;
  NamedTensors state;
  SegmentReport first, second;
  double evaluation = 0, ema_evaluation = 0;
};

// Two segments with an evaluation between them.
WholeOutcome run_whole(Pipeline& pipeline, Executor& executor) {
  WholeOutcome outcome;
  const SyntheticBatches batches = tiny_batches();
  outcome.first = run_segment(pipeline, executor, 0, 4, outcome.recorder);
  outcome.evaluation = evaluate(pipeline, executor, batches, 3, 4);
  if (pipeline.options().ema_decay > 0) {
    outcome.ema_evaluation = evaluate(pipeline, executor, batches, 3, 4, ModelWeights::Ema);
  }
  outcome.second = run_segment(pipeline, executor, 4, 3, outcome.recorder);
  outcome.state = state_of(pipeline);
  return outcome;
}

WholeOutcome run_in_processes(const Experiment& e, int world, const std::shared_ptr<Handover>& handover = nullptr) {
  const TemporaryDirectory place;
  const SyntheticBatches batches = tiny_batches();
  const auto others = followers(e, world, place.path().string(), batches, handover);
  WholeOutcome outcome;
  {
    Member member(e, 0, world, place.path().string());
    member.meet({}, handover);
    ProcessesExecutor executor(member.ranks, member.map);
    outcome = run_whole(member.pipeline, executor);
    executor.end_run(RunEnd::Finished);
  }
  for (const auto& other : others) {
    other->join();
    EXPECT_EQ(other->end, RunEnd::Finished) << other->error;
    outcome.state.merge(other->state);
  }
  return outcome;
}

void expect_same(const WholeOutcome& a, const WholeOutcome& b, const std::string& what) {
  EXPECT_EQ(a.recorder.losses, b.recorder.losses) << what;
  EXPECT_EQ(a.recorder.norms, b.recorder.norms) << what;
  EXPECT_EQ(a.evaluation, b.evaluation) << what;
  EXPECT_EQ(a.ema_evaluation, b.ema_evaluation) << what;
  EXPECT_TRUE(same_bits(a.state, b.state)) << what;
  for (const auto& [one, other] : {std::pair(&a.first, &b.first), std::pair(&a.second, &b.second)}) {
    EXPECT_EQ(one->delay, other->delay) << what;
    EXPECT_EQ(one->mismatch, other->mismatch) << what;
  }
}

void expect_same_as_replay(const Experiment& e, const std::vector<int>& worlds) {
  Pipeline pipeline = make_pipeline(e);
  const WholeOutcome expected = run_whole(pipeline, *make_replay_executor());
  for (const int world : worlds) {
    if (world > pipeline.schedule().workers) continue;
    expect_same(expected, run_in_processes(e, world), name_of(e) + ", " + std::to_string(world) + " processes");
  }
}

TEST(Processes, GiveTheBitsOfReplayUnderEverySchedule) {
  std::vector<Experiment> all = every_kind();
  for (const std::string plain : {"gpipe", "1f1b", "pipedream"}) all.push_back(experiment(plain, 4, 4));
  for (Experiment e : all) {
    e.dropout = 0.1;
    expect_same_as_replay(e, {2, 4});
  }
}

TEST(Processes, GiveTheBitsOfReplayWithRotationAndBf16AndGlobalNorms) {
  Experiment rotation = experiment("pipedream", 4, 2);
  rotation.optimizer = "basis-rotation";
  rotation.interval = 3;
  rotation.compute = at::kBFloat16;
  expect_same_as_replay(rotation, {2, 3, 4});
  rotation.schedule = "amdp";
  rotation.window = 4;
  expect_same_as_replay(rotation, {2, 3});
  Experiment global = experiment("1f1b", 4, 4);
  global.clip_scope = ClipScope::Global;
  expect_same_as_replay(global, {2, 4});
}

TEST(Processes, GiveTheBitsOfReplayWithReplicas) {
  for (Experiment e : {experiment("pipedream", 2, 2), experiment("amdp", 2, 3), experiment("zb-v", 4, 3),
                       experiment("1f1b", 2, 2), experiment("chimera", 2, 2)}) {
    for (const int replicas : {2, 3}) {
      e.replicas = replicas;
      e.dropout = 0.1;
      e.ema_decay = 0.9;
      expect_same_as_replay(e, {replicas, 2 * replicas});
    }
  }
}

// The tied weight goes between the first and the last stage of each pipeline, whose processes may have nothing else to
// send each other.
TEST(Processes, GiveTheBitsOfReplayWithATiedWeight) {
  for (Experiment e : {experiment("pipedream", 3, 2), experiment("1f1b", 3, 2), experiment("amdp", 3, 4)}) {
    e.tie = true;
    for (const int replicas : {1, 2}) {
      e.replicas = replicas;
      expect_same_as_replay(e, {2, make_schedule({e.schedule, e.stages, e.window, replicas}).workers});
    }
  }
}

// As between CUDA devices: tensors go through channels, and frames announce them.
TEST(Processes, GiveTheBitsOfReplayWhereTensorsGoBesideTheFrames) {
  Experiment replicas = experiment("1f1b", 2, 2);
  replicas.replicas = 2;
  replicas.reduction_part = 500;
  Experiment bf16 = experiment("amdp", 4, 4);
  bf16.compute = at::kBFloat16;
  for (const Experiment& e : {experiment("pipedream", 4, 2), bf16, replicas}) {
    Pipeline pipeline = make_pipeline(e);
    const WholeOutcome expected = run_whole(pipeline, *make_replay_executor());
    const auto handover = std::make_shared<Handover>();
    expect_same(expected, run_in_processes(e, 3, handover), name_of(e));
    EXPECT_GT(handover->messages, 20);
    for (const auto& [channel, tensors] : handover->under_way) EXPECT_TRUE(tensors.empty()) << "all are taken";
  }
}

// NCCL has no channel between two processes that have the same device.
TEST(Processes, ThatShareADeviceSendTensorsInFrames) {
  const Experiment e = experiment("pipedream", 4, 2);
  Pipeline pipeline = make_pipeline(e);
  const WholeOutcome expected = run_whole(pipeline, *make_replay_executor());
  const auto messages = [&](int devices) {
    const auto handover = std::make_shared<Handover>();
    handover->devices = devices;
    expect_same(expected, run_in_processes(e, 4, handover), std::to_string(devices) + " devices");
    return handover->messages;
  };
  EXPECT_EQ(messages(1), 0);
  EXPECT_GT(messages(2), 20);
  EXPECT_GT(messages(4), 20);
}

TEST(Processes, DrainWhereTheRunIsAskedToStop) {
  const Experiment e = experiment("pipedream", 4, 2);
  const TemporaryDirectory place;
  const SyntheticBatches batches = tiny_batches();
  const auto others = followers(e, 2, place.path().string(), batches);
  {
    Member member(e, 0, 2, place.path().string());
    member.meet({});
    ProcessesExecutor executor(member.ranks, member.map);
    std::atomic<bool> stop = false;
    StopAfter observer(5, stop);
    const SegmentReport report = run_segment(member.pipeline, executor, 0, 1000, observer, &stop);
    EXPECT_LT(report.microbatches, 2000);
    EXPECT_GE(report.microbatches, 5);
    EXPECT_EQ(static_cast<int64_t>(observer.recorder.losses.size()), report.microbatches);
    executor.end_run(RunEnd::Interrupted);
  }
  others[0]->join();
  EXPECT_EQ(others[0]->end, RunEnd::Interrupted);
}

TEST(Processes, AnswerWhatRank0Asks) {
  const Experiment e = experiment("pipedream", 4, 2);
  const TemporaryDirectory place;
  const SyntheticBatches batches = tiny_batches();
  const auto others = followers(e, 3, place.path().string(), batches);
  Member member(e, 0, 3, place.path().string());
  member.meet({});
  ProcessesExecutor executor(member.ranks, member.map);
  const auto ask = [&](const std::string& question, const std::function<void()>& meanwhile = {}) {
    return executor.ask(question, meanwhile, {60, [](int) {}});
  };
  Recorder recorder;
  int64_t updates = 0;
  for (const std::string question : {"how large", ""}) {
    EXPECT_EQ(ask(question), (std::vector<std::string>{"", question + ": rank 1", question + ": rank 2"}));
    run_segment(member.pipeline, executor, updates++, 1, recorder);
  }
  const auto fails = [] { throw RunError("rank 0's own part"); };
  EXPECT_THROW(ask("before", fails), RunError);
  EXPECT_EQ(ask("after"), (std::vector<std::string>{"", "after: rank 1", "after: rank 2"}));
  executor.end_run(RunEnd::Finished);
}

// An answer that comes only when rank 0 has told that it is late, while the rank's beats go on.
TEST(Processes, OneThatDoesNotAnswerIsNamedOnce) {
  const Experiment e = experiment("pipedream", 4, 2);
  const TemporaryDirectory place;
  std::promise<void> told;
  const auto answer = [&](const std::string& /*question*/) {
    told.get_future().wait();
    return std::string("at last");
  };
  std::jthread other([&] {
    Member member(e, 1, 2, place.path().string());
    member.meet({});
    carry_out_commands(member.pipeline, member.ranks, member.map, {nullptr, nullptr, answer});
  });
  Member member(e, 0, 2, place.path().string());
  member.meet({});
  ProcessesExecutor executor(member.ranks, member.map);
  std::vector<int> late;
  const auto tell = [&](int rank) {
    late.push_back(rank);
    told.set_value();
  };
  EXPECT_EQ(executor.ask("a question", {}, {0.01, tell}), (std::vector<std::string>{"", "at last"}));
  EXPECT_EQ(late, std::vector<int>{1});
  executor.end_run(RunEnd::Finished);
}

// The trace of 20 microbatches on four ranks, each with one stage of PipeDream.
struct Traced {
  std::vector<WorkerReport> workers;
  std::map<std::pair<int, int64_t>, TimedAction> forwards, backwards;  // by stage and microbatch
};

Traced traced_segment() {
  const TemporaryDirectory place;
  const SyntheticBatches batches = tiny_batches();
  const Experiment e = experiment("pipedream", 4, 1);
  const auto others = followers(e, 4, place.path().string(), batches);
  Member member(e, 0, 4, place.path().string());
  member.meet({});
  ProcessesExecutor executor(member.ranks, member.map);
  Segment segment;
  segment.schedule = &member.pipeline.schedule();
  segment.batches = &batches;
  segment.microbatches = 20;
  segment.traced_microbatches = segment.microbatches;
  segment.started -= std::chrono::milliseconds(300);  // as if rank 0 had been busy before it told the others
  Recorder recorder;
  Traced traced;
  traced.workers = executor.run(member.pipeline, segment, recorder).workers;
  executor.end_run(RunEnd::Finished);
  for (const WorkerReport& worker : traced.workers) {
    for (const TimedAction& timed : worker.trace) {
      const std::pair place_of(timed.action.stage, timed.action.microbatch);
      if (timed.action.kind == ActionKind::Forward) traced.forwards[place_of] = timed;
      if (timed.action.kind == ActionKind::Backward) traced.backwards[place_of] = timed;
    }
  }
  return traced;
}

// On one clock, an action ends after the action that sent its input has begun. A process's own clock would start only
// when it hears of the segment.
TEST(Processes, TracesAreOnOneClock) {
  constexpr double error = 0.1;  // much more than half a round trip between two threads
  Traced traced = traced_segment();
  ASSERT_EQ(traced.forwards.size(), 80u);
  ASSERT_EQ(traced.backwards.size(), 80u);
  for (const auto& [place_of, timed] : traced.forwards) {
    EXPECT_GT(timed.start, 0.3 - error) << "of the worker of stage " << place_of.first;
  }
  for (int64_t m = 0; m < 20; ++m) {
    for (int stage = 1; stage < 4; ++stage) {
      const TimedAction &below = traced.forwards[{stage - 1, m}], &forward = traced.forwards[{stage, m}];
      EXPECT_LT(below.start, forward.end + error);
      EXPECT_LT(traced.backwards[std::pair(stage, m)].start, traced.backwards[std::pair(stage - 1, m)].end + error);
      ASSERT_TRUE(forward.came);
      EXPECT_LT(below.start, *forward.came + error);
      EXPECT_LE(*forward.came, forward.end);
    }
    EXPECT_FALSE(traced.forwards[std::pair(0, m)].came) << "nobody sent it";
  }
}

// Some of the messages that the first stage sends are still under way when its next action begins.
TEST(Processes, SendsOverlapComputing) {
  Traced traced = traced_segment();
  const auto& first = traced.workers[0].trace;
  int overlapped = 0;
  for (size_t i = 0; i + 1 < first.size(); ++i) {
    if (first[i].action.kind != ActionKind::Forward) continue;
    const TimedAction& taken = traced.forwards[{1, first[i].action.microbatch}];
    ASSERT_TRUE(taken.came);
    if (first[i + 1].start < *taken.came) ++overlapped;
  }
  EXPECT_GT(overlapped, 0);
}

TEST(Processes, AreNoMoreThanWorkers) {
  EXPECT_THROW(RankMap(3, 4), InputError);
  for (int workers = 1; workers <= 12; ++workers) {
    for (int world = 1; world <= workers; ++world) {
      const RankMap map(workers, world);
      int next = 0;
      for (int rank = 0; rank < world; ++rank) {
        const WorkerRange here = map.workers_of(rank);
        EXPECT_EQ(here.begin, next);
        EXPECT_GT(here.end, here.begin);
        for (int worker = here.begin; worker < here.end; ++worker) EXPECT_EQ(map.rank_of(worker), rank);
        next = here.end;
      }
      EXPECT_EQ(next, workers);
    }
  }
}

}  // namespace
}  // namespace gyre
