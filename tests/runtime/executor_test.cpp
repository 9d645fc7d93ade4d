// Executors: threads equals replay to the bit, one stage equals plain training, observed delays are the schedule's, and
// a drained, restored pipeline continues as if nothing had happened.
#include "gyre/runtime/executor.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <set>

#include "fixture.h"
#include "gyre/core/cores.h"
#include "gyre/core/error.h"
#include "gyre/optim/clipping.h"

namespace gyre {
namespace {

using namespace testing_support;

class BitEquality : public ::testing::TestWithParam<std::tuple<at::ScalarType, WeightPolicy, std::string>> {};

TEST_P(BitEquality, ThreadsEqualReplayTwiceOver) {
  Experiment e;
  std::tie(e.compute, e.weights, e.optimizer) = GetParam();
  e.dropout = 0.1;
  const Outcome replay = run_experiment(e, 60);
  e.executor = "threads";
  const Outcome first = run_experiment(e, 60);
  const Outcome second = run_experiment(e, 60);
  EXPECT_EQ(replay.recorder.losses.size(), 60u);
  EXPECT_EQ(replay.recorder.losses, first.recorder.losses);
  EXPECT_EQ(first.recorder.losses, second.recorder.losses);
  EXPECT_EQ(replay.recorder.norms, first.recorder.norms);
  EXPECT_TRUE(same_bits(replay.weights, first.weights));
  EXPECT_TRUE(same_bits(first.weights, second.weights));
  double least = replay.recorder.losses.at(59);  // of the last ten; with late gradients single losses jump
  for (int64_t i = 50; i < 59; ++i) least = std::min(least, replay.recorder.losses.at(i));
  EXPECT_LT(least, replay.recorder.losses.at(0) - 0.3);  // and it learns
}

INSTANTIATE_TEST_SUITE_P(All, BitEquality,
                         ::testing::Combine(::testing::Values(at::kFloat, at::kBFloat16),
                                            ::testing::Values(WeightPolicy::Stash, WeightPolicy::Latest),
                                            ::testing::Values("adamw", "basis-rotation")));

// Records the cores that a thread asking for a batch may run on: those of the first and the last stage's workers.
class NotesCores final : public BatchSource {
 public:
  Batch batch(int64_t index) const override {
    const std::lock_guard lock(mutex_);
    seen.insert(usable_cores());
    return batches_.batch(index);
  }
  int64_t tokens_per_batch() const override { return batches_.tokens_per_batch(); }
  mutable std::set<std::vector<int>> seen;

 private:
  mutable std::mutex mutex_;
  SyntheticBatches batches_ = tiny_batches();
};

TEST(PinnedWorkers, StayOnCoresOfTheirOwnAndChangeNoBit) {
  const std::vector<int> all = usable_cores();
  Experiment e;
  e.stages = 2;
  e.executor = "threads";
  std::vector<Recorder> recorders(2);
  for (const bool pinned : {false, true}) {
    e.pin_workers = pinned;
    Pipeline pipeline = make_pipeline(e);
    const NotesCores batches;
    Segment segment;
    segment.schedule = &pipeline.schedule();
    segment.batches = &batches;
    segment.microbatches = 8;
    make_executor(e.executor)->run(pipeline, segment, recorders[pinned ? 1 : 0]);
    std::set<std::vector<int>> expected = {all};
    if (pinned) expected = {{all[0]}, {all[1 % all.size()]}};
    EXPECT_EQ(batches.seen, expected);
  }
  EXPECT_EQ(recorders[0].losses, recorders[1].losses);
  EXPECT_EQ(usable_cores(), all);
}

// Training written down directly: forward, backward, clip, step.
Outcome plain_training(const Experiment& e, int64_t updates) {
  Pipeline pipeline = make_pipeline(e);  // for initial weights and optimizer only
  StageOwner& owner = pipeline.owner(0);
  const SyntheticBatches batches = tiny_batches();
  Outcome outcome;
  for (int64_t update = 1; update <= updates; ++update) {
    FlatBuffer gradients = make_flat_buffer(owner.layers.parameters(), at::kFloat, at::kCPU);
    for (int64_t m = (update - 1) * e.window; m < update * e.window; ++m) {
      const Batch batch = batches.batch(m);
      LayerContext context;
      context.seed = pipeline.options().seed;
      context.microbatch = m;
      context.targets = batch.targets;
      std::vector<at::Tensor> weights;
      for (const auto& master : owner.weights.masters()) weights.push_back(master.to(e.compute));
      StageSaved saved;
      outcome.recorder.losses[m] = owner.layers.forward(weights, batch.inputs, context, saved).item<double>();
      owner.layers.backward(weights, at::scalar_tensor(1.0 / static_cast<double>(e.window)), saved, gradients.tensors);
    }
    const at::Tensor norms = squared_norms(gradients.tensors);
    const double norm = whole_norm({&norms, 1}).item<double>();
    clip(gradients.tensors, norm, pipeline.options().clip);
    UpdateContext context;
    context.update = update;
    context.learning_rate = pipeline.options().learning_rate(update);
    owner.weights.update(*owner.optimizer, gradients.tensors, norm, context);
  }
  for (const auto& [name, tensor] : pipeline.weights()) outcome.weights[name] = tensor.clone();
  return outcome;
}

TEST(OneStage, EverySchedulesIsPlainTraining) {
  for (const at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
    for (const std::string schedule : {"gpipe", "1f1b", "zb-h1", "pipedream", "paci"}) {
      for (const int64_t window : {1, 3}) {
        Experiment e;
        e.schedule = schedule;
        e.stages = 1;
        e.window = window;
        e.compute = compute;
        const Outcome plain = plain_training(e, 12);
        const Outcome run = run_experiment(e, 12);
        EXPECT_EQ(plain.recorder.losses, run.recorder.losses) << schedule << " window " << window;
        EXPECT_TRUE(same_bits(plain.weights, run.weights)) << schedule << " window " << window;
      }
    }
  }
}

TEST(Flush, AnyNumberOfStagesGivesTheSameBits) {
  // Also with clipping: the norm is global and summed in the model's order.
  Experiment e;
  e.schedule = "1f1b";
  e.window = 4;
  e.clip_scope = ClipScope::Global;
  e.learning_rate = 0.02;
  e.stages = 1;
  const Outcome one = run_experiment(e, 10);
  for (const int stages : {2, 3, 6}) {
    for (const char* schedule : {"1f1b", "gpipe"}) {
      for (const char* executor : {"replay", "threads"}) {
        e.stages = stages;
        e.schedule = schedule;
        e.executor = executor;
        const Outcome many = run_experiment(e, 10);
        EXPECT_EQ(one.recorder.losses, many.recorder.losses) << schedule << " " << stages << " " << executor;
        EXPECT_TRUE(same_bits(one.weights, many.weights)) << schedule << " " << stages << " " << executor;
      }
    }
  }
}

TEST(Delay, PipeDreamSeesStagesMinusOneMinusK) {
  for (const char* executor : {"replay", "threads"}) {
    Experiment e;
    e.executor = executor;
    const Outcome run = run_experiment(e, 40);
    for (int stage = 0; stage < 4; ++stage) {
      const int64_t steady = 3 - stage;
      std::map<int64_t, int64_t> expected;
      for (int64_t m = 0; m < 40; ++m) ++expected[std::min(m, steady)];
      EXPECT_EQ(run.report.delay[stage], expected) << executor << " stage " << stage;
      EXPECT_EQ(run.report.mismatch[stage], (std::map<int64_t, int64_t>{{0, 40}}));
    }
  }
  EXPECT_EQ(peak_weight_buffers({}, 40), (std::vector<size_t>{4, 3, 2, 1}));  // fp32: d - i versions
}

TEST(Delay, LatestWeightsMismatchInsteadOfStashing) {
  Experiment e;
  e.weights = WeightPolicy::Latest;
  const Outcome run = run_experiment(e, 40);
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(run.report.mismatch[stage].rbegin()->first, 3 - stage);
  }
  EXPECT_EQ(peak_weight_buffers(e, 40), (std::vector<size_t>{1, 1, 1, 1}));
}

TEST(Delay, FlushSchedulesHaveNone) {
  for (const char* schedule : {"gpipe", "1f1b"}) {
    Experiment e;
    e.schedule = schedule;
    e.window = 4;
    const Outcome run = run_experiment(e, 5);
    for (const auto& histogram : run.report.delay) EXPECT_EQ(histogram, (std::map<int64_t, int64_t>{{0, 20}}));
  }
}

TEST(Drain, RestoredPipelineContinuesToTheBit) {
  for (const char* optimizer : {"adamw", "basis-rotation"}) {
    Experiment e;
    e.optimizer = optimizer;
    e.compute = at::kBFloat16;
    Pipeline whole = make_pipeline(e);
    Recorder losses;
    run_segment(whole, e, 0, 13, losses);
    NamedTensors weights, state;
    for (const auto& [name, tensor] : whole.weights()) weights[name] = tensor.clone();
    for (const auto& [name, tensor] : whole.optimizer_state()) state[name] = tensor.clone();
    run_segment(whole, e, 13, 9, losses);

    // Restored into a new pipeline with another executor.
    e.executor = "threads";
    Pipeline resumed = make_pipeline(e);
    resumed.restore(weights, state, 13);
    Recorder rest;
    run_segment(resumed, e, 13, 9, rest);
    for (const auto& [microbatch, loss] : rest.losses) EXPECT_EQ(loss, losses.losses.at(microbatch)) << optimizer;
    EXPECT_TRUE(same_bits(whole.weights(), resumed.weights()));
    EXPECT_TRUE(same_bits(whole.optimizer_state(), resumed.optimizer_state()));
  }
}

TEST(Drain, AStopFinishesTheWindowAndEqualsARunDrainedThere) {
  for (const char* schedule : {"pipedream", "1f1b", "gpipe"}) {
    for (const char* executor : {"replay", "threads"}) {
      Experiment e;
      e.schedule = schedule;
      e.executor = executor;
      e.window = 3;
      std::atomic<bool> stop = false;
      StopAfter observer(7, stop);
      Pipeline stopped = make_pipeline(e);
      const SegmentReport report = run_segment(stopped, e, 0, 1000, observer, &stop);
      EXPECT_EQ(report.microbatches % 3, 0);
      EXPECT_LT(report.microbatches, 3000);
      EXPECT_GE(report.microbatches, 7);
      EXPECT_EQ(static_cast<int64_t>(observer.recorder.losses.size()), report.microbatches);

      const Outcome planned = run_experiment(e, report.microbatches / 3);
      EXPECT_EQ(planned.recorder.losses, observer.recorder.losses) << schedule << " " << executor;
      EXPECT_TRUE(same_bits(planned.weights, stopped.weights()));
    }
  }
}

TEST(Drain, AStopBeforeTheFirstMicrobatchTakesNoneIn) {
  for (const char* executor : {"replay", "threads"}) {
    Experiment e;
    e.executor = executor;
    const std::atomic<bool> stop = true;
    Recorder recorder;
    Pipeline pipeline = make_pipeline(e);
    EXPECT_EQ(run_segment(pipeline, e, 0, 10, recorder, &stop).microbatches, 0);
    EXPECT_TRUE(recorder.losses.empty());
  }
}

TEST(Evaluation, ForwardOnlyGivesTheSameLossesEverywhere) {
  std::map<int64_t, double> reference;
  for (const int stages : {1, 2, 5}) {
    for (const char* executor : {"replay", "threads"}) {
      Experiment e;
      e.stages = stages;
      e.dropout = 0.5;  // off in evaluation
      Pipeline pipeline = make_pipeline(e);
      Recorder recorder;
      run_evaluation(pipeline, executor, 20, recorder);
      ASSERT_EQ(recorder.losses.size(), 20u);
      if (reference.empty()) reference = recorder.losses;
      EXPECT_EQ(reference, recorder.losses) << stages << " " << executor;
    }
  }
}

// What replay says of a segment that stalls. drains: it is to drain at once.
std::string stall_of(Pipeline& pipeline, const Schedule& schedule, const WrapTransport& wrap, bool drains = false) {
  const SyntheticBatches batches = tiny_batches();
  Segment segment;
  segment.schedule = &schedule;
  segment.batches = &batches;
  segment.microbatches = 8;
  segment.wants_drain = [drains] { return drains; };
  Recorder recorder;
  try {
    make_replay_executor(wrap)->run(pipeline, segment, recorder);
  } catch (const RunError& error) {
    return error.what();
  }
  return "no stall";
}

// A schedule that can never be executed: stage 1 needs microbatch 1 first, stage 0 sends 0 and then waits for its
// gradient.
Schedule stalling_schedule() {
  Schedule schedule = make_schedule({"gpipe", 2, 2});
  schedule.programs[0].period = {parse_action("0F0", 1), parse_action("0B0", 1), parse_action("0F1", 1),
                                 parse_action("0B1", 1), parse_action("0U0", 1)};
  schedule.programs[1].period = {parse_action("1F1", 1), parse_action("1B1", 1), parse_action("1F0", 1),
                                 parse_action("1B0", 1), parse_action("1U0", 1)};
  return schedule;
}

TEST(Stall, NamesEveryWorkerAndWhatItWaitsFor) {
  for (const char* executor : {"replay", "threads"}) {
    Experiment e;
    e.schedule = "gpipe";
    e.stages = 2;
    e.window = 2;
    e.executor = executor;
    e.stall_seconds = 0.2;
    Pipeline pipeline = make_pipeline(e);
    const Schedule schedule = stalling_schedule();
    const SyntheticBatches batches = tiny_batches();
    Segment segment;
    segment.schedule = &schedule;
    segment.batches = &batches;
    segment.microbatches = 2;
    Recorder recorder;
    try {
      make_executor(executor)->run(pipeline, segment, recorder);
      FAIL() << "no stall noticed by " << executor;
    } catch (const RunError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("worker 0 at 0B0, waiting for the gradient of 1B0 from worker 1"));
      EXPECT_THAT(error.what(),
                  ::testing::HasSubstr("worker 1 at 1F1, waiting for the activation of 0F1 from worker 0"));
    }
  }
}

// The same with split backwards.
TEST(Stall, NamesTheHalfOfABackwardThatIsWaitedFor) {
  Pipeline pipeline = make_pipeline(experiment("zb-h1", 2, 2));
  Schedule schedule = pipeline.schedule();
  const auto program = [](std::vector<std::string> actions) {
    Program program;
    for (const std::string& action : actions) program.period.push_back(parse_action(action, 1));
    return program;
  };
  schedule.programs = {program({"0F0", "0I0", "0W0", "0F1", "0I1", "0W1", "0U0"}),
                       program({"1F1", "1I1", "1W1", "1F0", "1I0", "1W0", "1U0"})};
  EXPECT_THAT(stall_of(pipeline, schedule, {}),
              ::testing::HasSubstr("worker 0 at 0I0, waiting for the gradient of 1I0 from worker 1"));
}

// Links of one kind that never have room, or lose what is sent.
class BrokenLinks final : public Transport {
 public:
  BrokenLinks(Transport& sound, LinkKind kind, bool has_room) : sound_(sound), kind_(kind), has_room_(has_room) {}
  std::unique_ptr<Sender> sender(const LinkId& id, const LinkEnds& ends) override {
    struct Broken final : Sender {
      Broken(std::unique_ptr<Sender> sound, bool room) : sound(std::move(sound)), room(room) {}
      bool has_room() const override { return room; }
      void send(Message message) override {
        const bool is_hold = message.tensors.empty() && message.values.empty();
        if (is_hold) sound->send(std::move(message));
      }
      std::unique_ptr<Sender> sound;
      bool room;
    };
    auto sound = sound_.sender(id, ends);
    if (id.kind != kind_) return sound;
    return std::make_unique<Broken>(std::move(sound), has_room_);
  }
  std::unique_ptr<Receiver> receiver(const LinkId& id, const LinkEnds& ends) override {
    return sound_.receiver(id, ends);
  }

 private:
  Transport& sound_;
  LinkKind kind_;
  bool has_room_;
};

TEST(Stall, NamesWhatIsMissingBesidesInputs) {
  const auto stall = [](const Experiment& e, LinkKind kind, bool has_room, bool drains = false) {
    Pipeline pipeline = make_pipeline(e);
    return stall_of(
        pipeline, pipeline.schedule(),
        [&](Transport& memory, const Doorbells&) { return std::make_unique<BrokenLinks>(memory, kind, has_room); },
        drains);
  };
  using ::testing::HasSubstr;
  const Experiment plain = experiment("pipedream", 2, 1);
  Experiment replicas = plain, tied = plain;
  replicas.replicas = 2;
  tied.tie = true;
  EXPECT_THAT(stall(plain, LinkKind::Activation, false),
              HasSubstr("worker 0 at 0F0, waiting for room to send its output to worker 1"));
  EXPECT_THAT(stall(plain, LinkKind::Report, false), HasSubstr(", waiting for room to report"));
  EXPECT_THAT(stall(plain, LinkKind::Control, true, true),
              HasSubstr("worker 0 at 0F0, waiting for the point where the pipeline drains"));
  EXPECT_THAT(stall(tied, LinkKind::TiedWeight, true),
              HasSubstr("worker 1 at 1F0, waiting for the tied weight of 0F0 from worker 0"));
  EXPECT_THAT(stall(replicas, LinkKind::Version, true),
              HasSubstr("worker 0 at 0:0F0, waiting for the segment's first weights of stage 0 from workers 0, 2"));
  EXPECT_THAT(stall(replicas, LinkKind::Sum, true), HasSubstr(", waiting for the gradients of window 0 of stage 0"));
  EXPECT_THAT(stall(replicas, LinkKind::NormSum, true),
              HasSubstr(", waiting for the norms of window 0 from other owners"));
}

// A segment may run another schedule than the pipeline's, which may hold more at once. Here gradients of up to seven
// microbatches wait for a first stage that forwards all eight, and the pipeline's own schedule holds one.
TEST(Links, HaveRoomForWhatTheSegmentsScheduleHolds) {
  Pipeline pipeline = make_pipeline(experiment("gpipe", 2, 1));
  Schedule schedule = make_schedule({"gpipe", 2, 8});
  std::vector<Action>& last = schedule.programs[1].period;
  last.clear();
  for (int64_t m = 0; m < 8; ++m) {
    last.push_back({ActionKind::Forward, 0, 1, m});
    last.push_back({ActionKind::Backward, 0, 1, m});
  }
  last.push_back({ActionKind::Update, 0, 1, 0});
  EXPECT_EQ(most_in_flight(schedule)[0], (std::vector<int64_t>{8, 1}));
  EXPECT_EQ(pipeline.plan().in_flight[0], (std::vector<int64_t>{1, 1}));
  const SyntheticBatches batches = tiny_batches();
  Segment segment;
  segment.schedule = &schedule;
  segment.batches = &batches;
  segment.microbatches = 16;
  Recorder recorder;
  make_executor("replay")->run(pipeline, segment, recorder);
  EXPECT_EQ(recorder.losses.size(), 16u);
}

TEST(Delay, AVersionThatDiffersFromTheAnalysisIsAnError) {
  Experiment e;
  Pipeline pipeline = make_pipeline(e);
  const SyntheticBatches batches = tiny_batches();
  Segment segment;
  segment.schedule = &pipeline.schedule();
  segment.batches = &batches;
  segment.microbatches = 5;
  segment.first_update = 1;  // wrong: the weights are version 0
  Recorder recorder;
  EXPECT_THROW(make_executor("replay")->run(pipeline, segment, recorder), RunError);
}

TEST(Errors, NonFiniteLossStopsTheRunNamingIt) {
  for (const char* executor : {"replay", "threads"}) {
    Experiment e;
    e.executor = executor;
    e.learning_rate = 1e30;
    e.clip_scope = ClipScope::None;
    Recorder recorder;
    Pipeline pipeline = make_pipeline(e);
    try {
      run_segment(pipeline, e, 0, 200, recorder);
      FAIL() << "no error from " << executor;
    } catch (const RunError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("[optimizer] lr"));
    }
  }
}

TEST(Errors, GlobalClippingNeedsAFlush) {
  Experiment e;
  e.clip_scope = ClipScope::Global;
  EXPECT_THROW(make_pipeline(e), InputError);
}

}  // namespace
}  // namespace gyre
