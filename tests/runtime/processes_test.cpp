// The executor `processes`. The ranks here are threads of one process, each with a pipeline of its own, connected as
// processes are. The bits are those of replay; rank 0 reports what goes wrong in any of them.
#include "gyre/runtime/processes_executor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <functional>
#include <future>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

#include "fixture.h"
#include "gyre/core/error.h"
#include "gyre/runtime/evaluate.h"
#include "handed_channels.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using namespace testing_support;

// One rank of a run: its connections to the others, and its part of the pipeline.
struct Member {
  Member(const Experiment& e, int rank, int world, const std::string& place)
      : Member(e, rank, world, make_rendezvous({.directory = place, .world = world})) {}
  Member(const Experiment& e, int rank, int world, std::unique_ptr<Rendezvous> rendezvous)
      : ranks(rank, world, "job", std::move(rendezvous)),
        map(make_schedule({e.schedule, e.stages, e.window, e.replicas}).workers, world),
        pipeline(make_pipeline(e, map.workers_of(rank))) {}
  // handover: tensors go through it instead of in frames.
  void meet(const RankFacts& facts, const std::shared_ptr<Handover>& handover = nullptr) {
    std::unique_ptr<DeviceChannels> channels;
    if (handover) {
      channels = std::make_unique<HandedChannels>(handover, std::to_string(ranks.rank() % handover->devices));
    }
    ranks.meet(facts, linked_ranks(pipeline, map), 60, std::move(channels));
  }
  Ranks ranks;
  RankMap map;
  Pipeline pipeline;
};

// The weights and optimizer states of this process.
NamedTensors state_of(const Pipeline& pipeline) {
  NamedTensors state;
  for (const auto& [name, tensor] : pipeline.weights()) state[name] = tensor.clone();
  for (const auto& [name, tensor] : pipeline.optimizer_state()) state["optimizer " + name] = tensor.clone();
  return state;
}

// A thread that follows rank 0, and how that ended.
class Follower {
 public:
  Follower(const Experiment& e, int rank, int world, const std::string& place, const BatchSource& batches,
           RankFacts facts = {}, std::shared_ptr<Handover> handover = nullptr, std::stop_token stop = {},
           std::function<void(const Error&)> abandon = {}) {
    thread_ = std::jthread([=, this, &batches] {
      try {
        Member member(e, rank, world, place);
        member.meet(facts, handover);
        const auto answer = [rank](const std::string& question) { return question + ": rank " + std::to_string(rank); };
        end =
            carry_out_commands(member.pipeline, member.ranks, member.map, {&batches, &batches, answer, stop, abandon});
        state = state_of(member.pipeline);
      } catch (const std::exception& caught) {
        error = caught.what();
      }
    });
  }
  void join() { thread_.join(); }
  std::optional<RunEnd> end;
  NamedTensors state;
  std::string error;

 private:
  std::jthread thread_;
};

std::vector<std::unique_ptr<Follower>> followers(const Experiment& e, int world, const std::string& place,
                                                 const BatchSource& batches,
                                                 const std::shared_ptr<Handover>& handover = nullptr) {
  std::vector<std::unique_ptr<Follower>> all;
  for (int rank = 1; rank < world; ++rank) {
    all.push_back(std::make_unique<Follower>(e, rank, world, place, batches, RankFacts{}, handover));
  }
  return all;
}

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

// The text of the error that `action` throws.
template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was wrong";
}

// Fails at one microbatch.
struct FailingBatches final : BatchSource {
  Batch batch(int64_t index) const override {
    if (index == 9) throw RunError("the disk of this host has gone");
    return good.batch(index);
  }
  int64_t tokens_per_batch() const override { return good.tokens_per_batch(); }
  SyntheticBatches good = tiny_batches();
};

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

double an_hour_ahead() {
  return steady_seconds() + 3600;
}

TEST(Ranks, LearnHowFarRank0sClockIs) {
  const TemporaryDirectory place;
  const auto rendezvous = [&] { return make_rendezvous({.directory = place.path().string(), .world = 2}); };
  std::promise<void> learned;
  std::jthread rank_0([&] {
    Ranks ranks(0, 2, "job", rendezvous(), std::chrono::seconds(120), an_hour_ahead);
    ranks.meet({}, {}, 60);
    learned.get_future().wait();
  });
  Ranks ranks(1, 2, "job", rendezvous());
  ranks.meet({}, {}, 60);
  learned.set_value();
  EXPECT_NEAR(ranks.clock_of_rank_0().offset(), 3600, 60);
}

// A beat that comes between two segments does not say that its process was asked to stop.
TEST(Ranks, DoNotForgetThatOneWasAskedToStop) {
  const TemporaryDirectory place;
  const auto rendezvous = [&] { return make_rendezvous({.directory = place.path().string(), .world = 2}); };
  constexpr double kSilence = 2;
  std::promise<void> heard, looked;
  std::jthread rank_1([&] {
    Ranks ranks(1, 2, "job", rendezvous());
    ranks.meet({}, {}, kSilence);
    Doorbell bell;
    {
      const Ranks::Watch watch(ranks, bell, [] {
        RankStatus status;
        status.stop = true;
        status.workers.resize(1);
        return status;
      });
      heard.get_future().wait();
    }
    looked.get_future().wait();
  });
  Ranks ranks(0, 2, "job", rendezvous());
  ranks.meet({}, {}, kSilence);
  const auto has_workers = [&] { return !ranks.others().at(0).workers.empty(); };
  while (!has_workers() && !ranks.failure()) std::this_thread::yield();
  EXPECT_TRUE(ranks.others_asked_to_stop());
  heard.set_value();
  while (has_workers() && !ranks.failure()) std::this_thread::yield();
  EXPECT_TRUE(ranks.others_asked_to_stop());
  EXPECT_FALSE(ranks.failure());
  looked.set_value();
}

// The thread that sends beats must not end the process without a word.
TEST(Ranks, OneThatCannotTellHowItIsEndsTheRun) {
  const TemporaryDirectory place;
  const auto rendezvous = [&] { return make_rendezvous({.directory = place.path().string(), .world = 2}); };
  std::string own_error;
  const auto wait = [](Ranks& ranks) {
    Doorbell bell;
    const LinkId link = LinkId::of_rank(LinkKind::Answer, 1);
    const auto nothing = ranks.receiver(1 - ranks.rank(), 0, link, 1, bell);
    return error_of([&] { wait_for(ranks, *nothing, bell); });
  };
  std::jthread rank_1([&] {
    Ranks ranks(1, 2, "job", rendezvous());
    ranks.meet({}, {}, 2);
    Doorbell bell;
    const Ranks::Watch watch(ranks, bell, []() -> RankStatus { throw std::runtime_error("no status"); });
    own_error = wait(ranks);
  });
  std::string told;
  {
    Ranks ranks(0, 2, "job", rendezvous());
    ranks.meet({}, {}, 2);
    told = wait(ranks);
  }
  rank_1.join();
  EXPECT_NE(told.find("rank 1 (process "), std::string::npos) << told;
  EXPECT_NE(told.find("cannot go on: unexpected failure: no status"), std::string::npos) << told;
  EXPECT_NE(own_error.find("cannot go on: unexpected failure: no status"), std::string::npos) << own_error;
}

// As where rank 0 gets SIGSTOP, or its machine sleeps. Its watcher is held here, until rank 1 has given rank 0 up.
TEST(Ranks, OneThatWasStoppedItselfDoesNotBlameTheOtherAlone) {
  const TemporaryDirectory place;
  const auto rendezvous = [&] { return make_rendezvous({.directory = place.path().string(), .world = 2}); };
  constexpr double kSilence = 1;
  std::promise<void> held, gone;
  std::jthread rank_1([&] {
    {
      Ranks ranks(1, 2, "job", rendezvous());
      ranks.meet({}, {}, kSilence);
      held.get_future().wait();
      Doorbell bell;
      const auto nothing = ranks.receiver(0, 0, LinkId::of_rank(LinkKind::Command, 1), 1, bell);
      const std::string error = error_of([&] { wait_for(ranks, *nothing, bell); });
      EXPECT_NE(error.find("has said nothing for"), std::string::npos) << error;
    }
    gone.set_value();
  });
  Ranks ranks(0, 2, "job", rendezvous());
  ranks.meet({}, {}, kSilence);
  Doorbell bell;
  bool is_first = true;
  const Ranks::Watch watch(ranks, bell, [&] {
    if (std::exchange(is_first, false)) {
      held.set_value();
      gone.get_future().wait();
    }
    return RankStatus();
  });
  const auto nothing = ranks.receiver(1, 0, LinkId::of_rank(LinkKind::Answer, 1), 1, bell);
  const std::string error = error_of([&] { wait_for(ranks, *nothing, bell); });
  EXPECT_TRUE(error.starts_with("this process was stopped for ")) << error;
  EXPECT_NE(error.find(" s, and rank 1 (process "), std::string::npos) << error;
}

// Meets everybody, but cannot connect to one of them.
class BlockedPort final : public Rendezvous {
 public:
  BlockedPort(std::unique_ptr<Rendezvous> open, std::string blocked)
      : open_(std::move(open)), blocked_(std::move(blocked)) {}
  void leave(const std::string& key, const std::string& note) override { open_->leave(key, note); }
  bool leave_first(const std::string& key, const std::string& note) override { return open_->leave_first(key, note); }
  bool has(const std::string& key) override { return open_->has(key); }
  void check_stop() override { open_->check_stop(); }
  std::string find(const std::string& key, std::chrono::seconds within) override { return open_->find(key, within); }
  std::unique_ptr<Wire> connect(const std::string& name, bool first, const std::string& with) override {
    if (name == blocked_) throw RunError("the port is blocked");
    return open_->connect(name, first, with);
  }
  const std::string& address() const override { return open_->address(); }
  const std::string& listens_at() const override { return open_->listens_at(); }

 private:
  std::unique_ptr<Rendezvous> open_;
  std::string blocked_;
};

// Everybody connects, but what one sends to another is lost on the way, as where only the way between two hosts is cut.
class CutLink final : public Rendezvous {
 public:
  CutLink(std::unique_ptr<Rendezvous> open, std::string cut) : open_(std::move(open)), cut_(std::move(cut)) {}
  void leave(const std::string& key, const std::string& note) override { open_->leave(key, note); }
  bool leave_first(const std::string& key, const std::string& note) override { return open_->leave_first(key, note); }
  bool has(const std::string& key) override { return open_->has(key); }
  void check_stop() override { open_->check_stop(); }
  std::string find(const std::string& key, std::chrono::seconds within) override { return open_->find(key, within); }
  std::unique_ptr<Wire> connect(const std::string& name, bool first, const std::string& with) override {
    auto wire = open_->connect(name, first, with);
    return name == cut_ ? std::make_unique<Mute>(std::move(wire)) : std::move(wire);
  }
  const std::string& address() const override { return open_->address(); }
  const std::string& listens_at() const override { return open_->listens_at(); }

 private:
  struct Lost final : Transfer {
    void wait() override {}
    void abort() override {}
  };
  struct Mute final : Wire {
    explicit Mute(std::unique_ptr<Wire> given) : wire(std::move(given)) {}
    std::unique_ptr<Transfer> send(at::Tensor) override { return std::make_unique<Lost>(); }
    std::unique_ptr<Transfer> receive(at::Tensor bytes) override { return wire->receive(std::move(bytes)); }
    std::unique_ptr<Wire> wire;
  };
  std::unique_ptr<Rendezvous> open_;
  std::string cut_;
};

TEST(Processes, AStallNamesTheRanksOfItsWorkers) {
  const TemporaryDirectory place;
  const auto rendezvous = [&] { return make_rendezvous({.directory = place.path().string(), .world = 3}); };
  Experiment e = experiment("pipedream", 3, 1);
  e.stall_seconds = 0.5;
  const SyntheticBatches batches = tiny_batches();
  std::jthread rank_1([&] {
    Member member(e, 1, 3, std::make_unique<CutLink>(rendezvous(), "link/1-2"));
    member.meet({});
    EXPECT_THROW(carry_out_commands(member.pipeline, member.ranks, member.map, {&batches, &batches, {}}), Error);
  });
  Follower rank_2(e, 2, 3, place.path().string(), batches);
  const std::string error = error_of([&] {
    Member member(e, 0, 3, place.path().string());
    member.meet({});
    ProcessesExecutor executor(member.ranks, member.map);
    Recorder recorder;
    run_segment(member.pipeline, executor, 0, 8, recorder);
  });
  EXPECT_NE(error.find("the pipeline stalled: "), std::string::npos) << error;
  EXPECT_NE(error.find(": rank 0: worker 0 "), std::string::npos) << error;
  EXPECT_NE(error.find("; rank 1 (process "), std::string::npos) << error;
  EXPECT_NE(error.find("; rank 2 (process "), std::string::npos) << error;
}

// Rank 2 cannot connect to rank 1. Rank 0, which both are connected to, is told, and does not wait for them to be
// silent for too long.
TEST(Ranks, AreToldWhereTwoOfThemCannotConnect) {
  const TemporaryDirectory place;
  const auto rendezvous = [&] {
    return make_rendezvous({.directory = place.path().string(), .world = 3, .deadline = std::chrono::seconds(2)});
  };
  const std::set<std::pair<int, int>> pairs = {{1, 2}};
  std::jthread rank_1([&] {
    Ranks ranks(1, 3, "job", rendezvous());
    EXPECT_THROW(ranks.meet({}, pairs, 60), Error);
  });
  std::jthread rank_2([&] {
    Ranks ranks(2, 3, "job", std::make_unique<BlockedPort>(rendezvous(), "link/1-2"));
    EXPECT_THROW(ranks.meet({}, pairs, 60), RunError);
  });
  Ranks ranks(0, 3, "job", rendezvous());
  ranks.meet({}, pairs, 60);
  Doorbell bell;
  const auto nothing = ranks.receiver(2, 0, LinkId::of_rank(LinkKind::Answer, 2), 1, bell);
  const std::string error = error_of([&] { wait_for(ranks, *nothing, bell); });
  EXPECT_NE(error.find("rank 2 (process "), std::string::npos) << error;
  EXPECT_NE(error.find("the port is blocked"), std::string::npos) << error;
}

// What the others and rank 0 make of a rank 1 that is asked to stop after its hello, while rank 2 is still awaited.
// `say`: what rank 1 does as it ends. Returns rank 0's error; rank 2 must leave it to rank 0.
std::string meeting_without_rank_1(const std::function<void(Ranks&, const Error&)>& say,
                                   const std::function<void(Rendezvous&)>& then, int exit_code) {
  const TemporaryDirectory place;
  const auto rendezvous = [&](std::stop_token stop = {}) {
    return make_rendezvous(
        {.directory = place.path().string(), .world = 3, .deadline = std::chrono::seconds(2), .stop = std::move(stop)});
  };
  const auto onlooker = rendezvous();
  std::stop_source stop;
  std::jthread rank_1([&] {
    Ranks ranks(1, 3, "job", rendezvous(stop.get_token()));
    try {
      ranks.meet({}, {}, 60);
    } catch (const Error& error) {
      say(ranks, error);
    }
  });
  onlooker->find("rank 1", std::chrono::seconds(60));
  stop.request_stop();
  rank_1.join();
  then(*onlooker);
  std::jthread rank_2([&] {
    Ranks ranks(2, 3, "job", rendezvous());
    try {
      ranks.meet({}, {}, 60);
      ADD_FAILURE() << "rank 2 has met others";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), std::string(ToldElsewhere(exit_code).what()));
      EXPECT_EQ(error.exit_code(), exit_code);
      ranks.refuse(error);
    }
  });
  Ranks ranks(0, 3, "job", rendezvous());
  return error_of([&] {
    try {
      ranks.meet({}, {}, 60);
    } catch (const Error& error) {
      ranks.refuse(error);
      EXPECT_EQ(error.exit_code(), exit_code);
      throw;
    }
  });
}

TEST(Ranks, OneThatWithdrawsAfterItsHelloIsNamedByRank0Alone) {
  const std::string error = meeting_without_rank_1([](Ranks& ranks, const Error& error) { ranks.refuse(error); },
                                                   [](Rendezvous&) {}, kTerminated);
  EXPECT_NE(error.find("rank 1 (process "), std::string::npos) << error;
  EXPECT_NE(error.find("): stopped before all ranks had met"), std::string::npos) << error;
}

// It was killed, so nothing but the hello is left of it. The hello gets the number of a process that has ended.
TEST(Ranks, OneThatEndsWithoutAWordAfterItsHelloIsNamedByRank0Alone) {
  const pid_t ended = ::fork();
  if (ended == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(ended, nullptr, 0), ended);
  const std::string before = fmt::format("\"process\":{}", ::getpid()), after = fmt::format("\"process\":{}", ended);
  const std::string error = meeting_without_rank_1([](Ranks&, const Error&) {},
                                                   [&](Rendezvous& onlooker) {
                                                     std::string hello =
                                                         onlooker.find("rank 1", std::chrono::seconds(1));
                                                     const size_t at = hello.find(before);
                                                     ASSERT_NE(at, std::string::npos) << hello;
                                                     onlooker.leave("rank 1", hello.replace(at, before.size(), after));
                                                   },
                                                   kFailed);
  EXPECT_NE(error.find(fmt::format("rank 1 (process {} on ", ended)), std::string::npos) << error;
  EXPECT_NE(error.find(") has ended before all ranks had met"), std::string::npos) << error;
}

// All have come by the time rank 0 is ready, and it has been asked to stop meanwhile.
TEST(Ranks, ARequestToStopWhileOneGetsReadyIsHeeded) {
  const TemporaryDirectory place;
  std::jthread rank_1([&] {
    Ranks ranks(1, 2, "job", make_rendezvous({.directory = place.path().string(), .world = 2}));
    EXPECT_THROW(ranks.meet({}, {}, 60), ToldElsewhere);
  });
  std::stop_source stop;
  Ranks ranks(0, 2, "job", make_rendezvous({.directory = place.path().string(), .world = 2, .stop = stop.get_token()}));
  make_rendezvous({.directory = place.path().string(), .world = 2})->find("rank 1", std::chrono::seconds(60));
  stop.request_stop();
  try {
    ranks.meet({}, {}, 60);
    ADD_FAILURE() << "the ranks have met";
  } catch (const StoppedMeeting& error) {
    ranks.refuse(error);
  }
}

// Rank 0 cannot connect to rank 1. Rank 2, which waits for rank 0, does not take that for its own finding.
TEST(Ranks, ThoseThatRank0HasNotComeToLeaveItToRank0ToTell) {
  const TemporaryDirectory place;
  const auto rendezvous = [&] {
    return make_rendezvous({.directory = place.path().string(), .world = 3, .deadline = std::chrono::seconds(2)});
  };
  const auto come = [&](int rank) {
    Ranks ranks(rank, 3, "job", rendezvous());
    EXPECT_THROW(ranks.meet({}, {}, 60), ToldElsewhere) << rank;
  };
  std::jthread rank_1([&] { come(1); }), rank_2([&] { come(2); });
  Ranks ranks(0, 3, "job", std::make_unique<BlockedPort>(rendezvous(), "link/0-1"));
  EXPECT_EQ(error_of([&] { ranks.meet({}, {}, 60); }), "the port is blocked");
}

// As on a disk that does not answer. The advice is about the directory, not about ports.
TEST(Ranks, ADirectoryThatDoesNotAnswerIsNamed) {
  const TemporaryDirectory place;
  std::promise<std::string> late;
  const auto rendezvous = make_rendezvous({.directory = place.path().string(),
                                           .world = 2,
                                           .deadline = std::chrono::seconds(1),
                                           .abandon = [&](const Error& error) { late.set_value(error.what()); }});
  rendezvous->leave("a key", "a note");
  const std::string store = place.path() / "store";
  const int locked = ::open(store.c_str(), O_RDWR);
  ASSERT_EQ(::flock(locked, LOCK_EX), 0);
  std::jthread rank([&] { rendezvous->leave("a key", "another note"); });
  const std::string error = late.get_future().get();
  ::close(locked);
  EXPECT_EQ(error, store + ": could not be read or written in 1 s; is there room in TMPDIR, and does its disk answer?");
}

TEST(Ranks, MayLeaveAtOnce) {
  const TemporaryDirectory place;
  const auto meet = [&](int rank) {
    Ranks ranks(rank, 2, "job", make_rendezvous({.directory = place.path().string(), .world = 2}));
    ranks.meet({}, {}, 1e6);  // silence is never noticed
  };
  std::jthread rank_0([&] { meet(0); });
  meet(1);
}

TEST(Ranks, TheQuickestOfTheLastAnswersTellsTheTime) {
  ClockOffset clock;
  clock.add(10, 110.5, 12);  // 99.5, wrong by at most 1
  EXPECT_DOUBLE_EQ(clock.offset(), 99.5);
  clock.add(20, 120.125, 20.25);  // 100, wrong by at most 1/8
  EXPECT_DOUBLE_EQ(clock.offset(), 100);
  for (int i = 0; i < 16; ++i) clock.add(30, 140, 31);  // the clocks have drifted since
  EXPECT_DOUBLE_EQ(clock.offset(), 109.5);
}

TEST(Processes, ASlowActionOfAnyRankIsToldByRank0) {
  // The last stage's forward of one microbatch, which lasts until rank 0 has heard of it.
  struct Slow final : BatchSource {
    Batch batch(int64_t index) const override {
      if (index == 3) heard.get_future().wait();
      return tiny_batches().batch(index);
    }
    int64_t tokens_per_batch() const override { return tiny_batches().tokens_per_batch(); }
    mutable std::promise<void> heard;
  } slow;
  struct Listener final : SegmentObserver {
    void on_loss(int64_t, double) override {}
    void on_update(int, int64_t, const std::vector<double>&) override {}
    void on_slow_action(const std::string& what) override {
      if (told.empty()) heard.set_value();
      told = what;
    }
    explicit Listener(std::promise<void>& promise) : heard(promise) {}
    std::promise<void>& heard;
    std::string told;
  } listener(slow.heard);
  const TemporaryDirectory place;
  Experiment e = experiment("pipedream", 2, 1);
  e.stall_seconds = 0.3;
  Follower other(e, 1, 2, place.path().string(), slow);
  {
    Member member(e, 0, 2, place.path().string());
    member.meet({});
    ProcessesExecutor executor(member.ranks, member.map);
    EXPECT_EQ(run_segment(member.pipeline, executor, 0, 8, listener).microbatches, 8);
    executor.end_run(RunEnd::Finished);
  }
  other.join();
  EXPECT_EQ(other.end, RunEnd::Finished) << other.error;
  EXPECT_NE(listener.told.find("rank 1 (process "), std::string::npos) << listener.told;
  EXPECT_NE(listener.told.find("worker 1 has been inside 1F3 for "), std::string::npos) << listener.told;
}

// Rank 0 fails while a worker of rank 1 does not return. Rank 1 has been asked to stop, so it waits for stall_seconds,
// not ten times as long. Time in which it did not look does not count, so it gives up before twice that time.
TEST(Processes, OneThatWasAskedToStopGivesUpAWorkerSoon) {
  struct Hanging final : BatchSource {
    Batch batch(int64_t index) const override {
      if (index == 3) given_up.get_future().wait();
      return tiny_batches().batch(index);
    }
    int64_t tokens_per_batch() const override { return tiny_batches().tokens_per_batch(); }
    mutable std::promise<void> given_up;
  } hanging;
  struct Failing final : SegmentObserver {
    void on_loss(int64_t, double) override {}
    void on_update(int, int64_t, const std::vector<double>&) override {}
    void on_slow_action(const std::string& /*what*/) override { throw RunError("the disk is broken"); }
  } observer;
  std::stop_source stop;
  stop.request_stop();
  std::string why;
  const TemporaryDirectory place;
  Experiment e = experiment("pipedream", 2, 1);
  e.stall_seconds = 0.4;
  Follower other(e, 1, 2, place.path().string(), hanging, {}, nullptr, stop.get_token(), [&](const Error& error) {
    why = error.what();
    hanging.given_up.set_value();
  });
  {
    Member member(e, 0, 2, place.path().string());
    member.meet({});
    ProcessesExecutor executor(member.ranks, member.map);
    EXPECT_THROW(run_segment(member.pipeline, executor, 0, 8, observer), RunError);
  }
  other.join();
  EXPECT_TRUE(why.find("; 0 s later not all") != std::string::npos ||
              why.find("; 1 s later not all") != std::string::npos)
      << why;
}

TEST(Processes, AnErrorInOneIsToldByRank0) {
  const Experiment e = experiment("pipedream", 4, 2);
  const TemporaryDirectory place;
  const FailingBatches failing;  // the last stage's worker asks for its targets
  const SyntheticBatches batches = tiny_batches();
  Follower middle(e, 1, 3, place.path().string(), batches);
  Follower last(e, 2, 3, place.path().string(), failing);
  const std::string error = error_of([&] {
    Member member(e, 0, 3, place.path().string());
    member.meet({});
    ProcessesExecutor executor(member.ranks, member.map);
    Recorder recorder;
    run_segment(member.pipeline, executor, 0, 100, recorder);
  });
  EXPECT_NE(error.find("rank 2 (process "), std::string::npos) << error;
  EXPECT_NE(error.find("cannot go on: the disk of this host has gone"), std::string::npos) << error;
  middle.join();
  last.join();
  const std::string told = ToldElsewhere(1).what();
  EXPECT_EQ(middle.error, told);
  EXPECT_EQ(last.error, told);
}

TEST(Processes, ADifferenceIsToldBeforeAnythingRuns) {
  const Experiment e = experiment("pipedream", 4, 2);
  const TemporaryDirectory place;
  const SyntheticBatches batches = tiny_batches();
  Follower same(e, 1, 3, place.path().string(), batches, {{"build", "a"}, {"data", "b"}});
  Follower other(e, 2, 3, place.path().string(), batches, {{"build", "a"}, {"data", "c"}});
  const std::string error = error_of([&] {
    Member member(e, 0, 3, place.path().string());
    try {
      member.meet({{"build", "a"}, {"data", "b"}});
    } catch (const Error& error) {
      member.ranks.refuse(error);
      throw;
    }
  });
  EXPECT_NE(error.find("rank 2 (process "), std::string::npos) << error;
  EXPECT_NE(error.find("its data is not that of rank 0 (c, and b)"), std::string::npos) << error;
  same.join();
  other.join();
  EXPECT_EQ(same.error, ToldElsewhere(2).what());
  EXPECT_EQ(other.error, ToldElsewhere(2).what());
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
