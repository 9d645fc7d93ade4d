// Every schedule executed: several pipelines, several stages on a worker, split backwards, adopted versions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "fixture.h"
#include "gyre/core/error.h"
#include "gyre/schedule/compute_costs.h"
#include "gyre/schedule/delay.h"
#include "gyre/schedule/recompute_groups.h"
#include "gyre/schedule/validate.h"

namespace gyre {
namespace {

using namespace testing_support;

TEST(EverySchedule, ThreadsEqualReplayAndSeeTheAnalysedDelays) {
  for (Experiment e : every_kind()) {
    for (const at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
      for (const WeightPolicy weights : {WeightPolicy::Stash, WeightPolicy::Latest}) {
        e.compute = compute;
        e.weights = weights;
        e.executor = "replay";
        const int64_t updates = 9;
        const Outcome replay = run_experiment(e, updates);
        e.executor = "threads";
        const Outcome threads = run_experiment(e, updates);
        ASSERT_EQ(replay.recorder.losses.size(), static_cast<size_t>(updates * e.window)) << name_of(e);
        EXPECT_EQ(replay.recorder.losses, threads.recorder.losses) << name_of(e);
        EXPECT_EQ(replay.recorder.norms, threads.recorder.norms) << name_of(e);
        EXPECT_TRUE(same_bits(replay.weights, threads.weights)) << name_of(e);

        const DelayAnalysis analysis = analyse_delays(make_pipeline(e).schedule(), updates * e.window);
        EXPECT_EQ(replay.report.delay, analysis.delay) << name_of(e);
        EXPECT_EQ(threads.report.delay, analysis.delay) << name_of(e);
        if (weights == WeightPolicy::Latest) {
          EXPECT_EQ(threads.report.mismatch, analysis.mismatch) << name_of(e);
        }
      }
    }
  }
}

double mean_loss(const Recorder& recorder, int64_t begin, int64_t end) {
  double sum = 0;
  for (int64_t m = begin; m < end; ++m) sum += recorder.losses.at(m);
  return sum / static_cast<double>(end - begin);
}

TEST(EverySchedule, Learns) {
  for (const Experiment& e : every_kind()) {
    const Outcome run = run_experiment(e, 40);
    const int64_t n = 40 * e.window;
    EXPECT_LT(mean_loss(run.recorder, n - e.window, n), mean_loss(run.recorder, 0, e.window) - 0.25) << name_of(e);
  }
}

// If gradients are added in the same order, the bits are the same.
TEST(Flush, SplitAndInterleavedBackwardsEqual1F1B) {
  for (const bool split : {true, false}) {
    Experiment plain = experiment("1f1b", 4, 4);
    plain.clip_scope = ClipScope::Global;
    Experiment other = experiment(split ? "zb-h1" : "interleaved-1f1b", 4, 4);
    other.clip_scope = ClipScope::Global;
    other.executor = "threads";
    const Outcome expected = run_experiment(plain, 10);
    const Outcome found = run_experiment(other, 10);
    EXPECT_EQ(expected.recorder.losses, found.recorder.losses) << other.schedule;
    EXPECT_TRUE(same_bits(expected.weights, found.weights)) << other.schedule;
  }
}

// Gradients are added in the order of microbatches, whoever adds them.
TEST(Flush, VShapedSchedulesEqualOneStage) {
  for (const Experiment& v : {experiment("zb-v", 4, 5), experiment("zb-v", 6, 3), experiment("dualpipe-v", 4, 5),
                              experiment("dualpipe-v", 6, 6)}) {
    for (const at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
      Experiment one = experiment("gpipe", 1, v.window);
      Experiment other = v;
      one.compute = other.compute = compute;
      one.clip_scope = other.clip_scope = ClipScope::Global;
      one.dropout = other.dropout = 0.1;
      const Outcome expected = run_experiment(one, 10);
      for (const char* executor : {"replay", "threads"}) {
        other.executor = executor;
        const Outcome found = run_experiment(other, 10);
        EXPECT_EQ(expected.recorder.losses, found.recorder.losses) << name_of(other) << " " << executor;
        EXPECT_TRUE(same_bits(expected.weights, found.weights)) << name_of(other) << " " << executor;
      }
    }
  }
}

// Two pipelines add the same gradients in another order, so only rounding differs.
TEST(Flush, ChimeraIs1F1BButForRounding) {
  Experiment plain = experiment("1f1b", 4, 8);
  plain.clip_scope = ClipScope::Global;
  Experiment other = experiment("chimera", 4, 8);
  other.clip_scope = ClipScope::Global;
  const Outcome expected = run_experiment(plain, 10);
  const Outcome found = run_experiment(other, 10);
  for (const auto& [microbatch, loss] : expected.recorder.losses) {
    EXPECT_NEAR(loss, found.recorder.losses.at(microbatch), 2e-4) << microbatch;
  }
  for (int64_t m = 0; m < 8; ++m) EXPECT_EQ(expected.recorder.losses.at(m), found.recorder.losses.at(m));
}

// With the weights that the forward read, running it again changes no bit, dropout included.
TEST(Recompute, ChangesNothingButMemory) {
  for (Experiment e : {experiment("pipedream", 4, 1), experiment("zb-h1", 3, 4), experiment("zb-v", 4, 3),
                       experiment("amdp", 4, 4), experiment("1f1b", 1, 2), experiment("gpipe", 2, 6)}) {
    for (const at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
      e.compute = compute;
      e.dropout = 0.1;
      e.recompute = false;
      const Outcome kept = run_experiment(e, 8);
      e.recompute = true;
      const Outcome recomputed = run_experiment(e, 8);
      EXPECT_EQ(kept.recorder.losses, recomputed.recorder.losses) << name_of(e);
      EXPECT_TRUE(same_bits(kept.weights, recomputed.weights)) << name_of(e);
      const auto held = held_microbatches(make_schedule({.name = e.schedule, .stages = e.stages, .window = e.window}));
      for (int stage = 0; stage < e.stages; ++stage) {
        const int64_t all = kept.report.sizes[stage].activation_bytes;
        const int64_t found = recomputed.report.sizes[stage].activation_bytes;
        EXPECT_LE(found, all) << name_of(e);
        if (e.stages == 1 || held[stage].most > 1) {
          EXPECT_LT(found, all * 3 / 4) << name_of(e) << ", stage " << stage;
        }
      }
    }
  }
}

// Where a backward reads newer weights than its forward, so does the forward that it repeats.
TEST(Recompute, WithTheLatestWeightsIsTheSameUnderEveryExecutor) {
  Experiment e = experiment("pipedream", 2, 1);
  e.weights = WeightPolicy::Latest;
  e.recompute = true;
  const Outcome replay = run_experiment(e, 8);
  e.executor = "threads";
  const Outcome threads = run_experiment(e, 8);
  EXPECT_EQ(replay.recorder.losses, threads.recorder.losses);
  EXPECT_TRUE(same_bits(replay.weights, threads.weights));
}

TEST(Amdp, WithoutLearningTheLossIsThatOfOneDevice) {
  Experiment single = experiment("gpipe", 1, 4);
  single.learning_rate = 0;
  const Outcome expected = run_experiment(single, 8);
  for (const int stages : {2, 3, 4, 6}) {
    Experiment e = experiment("amdp", stages, 8);
    e.learning_rate = 0;
    e.weights = WeightPolicy::Latest;
    e.executor = "threads";
    EXPECT_EQ(run_experiment(e, 4).recorder.losses, expected.recorder.losses) << stages;
  }
}

// All forwards of the first window read the initial weights. Where its backwards do too (the first update comes later),
// its gradient is the synchronous one: nothing is lost and nothing counted twice.
TEST(Amdp, TheGradientOfAWindowIsWhole) {
  const auto norm = [](const Outcome& run, int64_t update) {
    double squares = 0;
    for (const auto& [key, values] : run.recorder.norms) {
      if (key.first != update) continue;
      for (double value : values) squares += value;
    }
    return std::sqrt(squares);
  };
  for (const int64_t window : {4, 5, 7, 8, 12}) {
    const Outcome synchronous = run_experiment(experiment("1f1b", 4, window), 1);
    const Outcome amdp = run_experiment(experiment("amdp", 4, window), 1);
    EXPECT_NEAR(norm(synchronous, 1), norm(amdp, 1), 1e-5 * norm(synchronous, 1)) << window;
    // With learning rate 0 the same holds for every window, also where blocks and windows overlap.
    Experiment still = experiment("amdp", 4, window);
    still.learning_rate = 0;
    Experiment still_plain = experiment("1f1b", 4, window);
    still_plain.learning_rate = 0;
    const Outcome a = run_experiment(still, 6), b = run_experiment(still_plain, 6);
    for (int64_t update = 1; update <= 6; ++update) {
      EXPECT_NEAR(norm(a, update), norm(b, update), 1e-5 * norm(b, update)) << window << " " << update;
    }
  }
}

TEST(Amdp, OneOptimizerPerStageWhateverThePipelines) {
  const auto bytes = [](Pipeline& pipeline) {
    int64_t total = 0;
    for (const auto& [name, tensor] : pipeline.optimizer_state()) total += static_cast<int64_t>(tensor.nbytes());
    return total;
  };
  Pipeline one = make_pipeline(experiment("1f1b", 4, 4));
  Pipeline two = make_pipeline(experiment("amdp", 4, 4));
  // Replicated optimizers would be d/2 = 2 times as much.
  EXPECT_EQ(bytes(two), bytes(one));
  // At the end every replica has the owner's version.
  Recorder recorder;
  run_segment(two, experiment("amdp", 4, 4), 0, 3, recorder);
  for (int stage = 0; stage < 4; ++stage) {
    for (int p = 0; p < 2; ++p) {
      EXPECT_EQ(two.replica(p, stage).weights->number, 3);
      for (size_t i = 0; i < two.owner(stage).weights.masters().size(); ++i) {
        EXPECT_TRUE(two.replica(p, stage).weights->buffer.tensors[i].equal(two.owner(stage).weights.masters()[i]));
      }
    }
  }
}

TEST(Drain, AStopEqualsARunDrainedThereUnderEverySchedule) {
  for (Experiment e : every_kind()) {
    for (const char* executor : {"replay", "threads"}) {
      e.executor = executor;
      std::atomic<bool> stop = false;
      StopAfter observer(2 * e.window + 1, stop);
      Pipeline stopped = make_pipeline(e);
      const SegmentReport report = run_segment(stopped, e, 0, 1000, observer, &stop);
      EXPECT_EQ(report.microbatches % e.window, 0);
      EXPECT_LT(report.microbatches, 1000 * e.window);
      EXPECT_EQ(static_cast<int64_t>(observer.recorder.losses.size()), report.microbatches);
      const Outcome planned = run_experiment(e, report.microbatches / e.window);
      EXPECT_EQ(planned.recorder.losses, observer.recorder.losses) << name_of(e) << " " << executor;
      EXPECT_TRUE(same_bits(planned.weights, stopped.weights())) << name_of(e) << " " << executor;
    }
  }
}

TEST(Evaluation, ForwardOnlyRunsOnAnyPlacement) {
  std::map<int64_t, double> reference;
  for (const Experiment& e : every_kind()) {
    for (const char* executor : {"replay", "threads"}) {
      Pipeline pipeline = make_pipeline(e);
      Recorder recorder;
      run_evaluation(pipeline, executor, 15, recorder);
      if (reference.empty()) reference = recorder.losses;
      EXPECT_EQ(recorder.losses.size(), 15u);
      EXPECT_EQ(reference, recorder.losses) << name_of(e) << " " << executor;
    }
  }
}

// Randomly shuffled programs end in both the simulator and the executor, or in neither.
TEST(Property, TheSimulatorFinishesExactlyWhenTheExecutorDoes) {
  std::mt19937 random(3);
  const SyntheticBatches batches = tiny_batches();
  int finished = 0, stalled = 0;
  for (const Experiment& e : {experiment("1f1b", 3, 3), experiment("zb-h1", 3, 3), experiment("amdp", 4, 4),
                              experiment("interleaved-1f1b", 4, 2), experiment("chimera", 2, 4),
                              experiment("zb-v", 4, 3), experiment("dualpipe-v", 4, 4)}) {
    for (int trial = 0; trial < 40; ++trial) {
      Pipeline pipeline = make_pipeline(e);
      Schedule shuffled = pipeline.schedule();
      for (int swap = 0; swap < 2; ++swap) {
        auto& period = shuffled.programs[random() % shuffled.programs.size()].period;
        std::swap(period[random() % period.size()], period[random() % period.size()]);
      }
      bool valid = true;
      try {
        validate(shuffled);
      } catch (const InputError& error) {
        // Orders that a worker could not even try concern the validator alone.
        if (std::string(error.what()).find("which this worker does later or never") != std::string::npos) continue;
        if (std::string(error.what()).find("deadlock") == std::string::npos) continue;
        valid = false;
      }
      const int64_t n = 3 * shuffled.shift;
      bool simulated = true, executed = true;
      try {
        makespan(shuffled, n, ComputeCosts{});
      } catch (const InputError&) {
        simulated = false;
      }
      Segment segment;
      segment.schedule = &shuffled;
      segment.batches = &batches;
      segment.microbatches = n;
      Recorder recorder;
      try {
        make_executor("replay")->run(pipeline, segment, recorder);
      } catch (const RunError&) {
        executed = false;
      }
      EXPECT_EQ(simulated, executed) << e.schedule;
      EXPECT_EQ(simulated, valid) << e.schedule;
      (simulated ? finished : stalled) += 1;
    }
  }
  EXPECT_GT(finished, 5);
  EXPECT_GT(stalled, 5);
}

// A long trace ends with whole microbatches, so that everything that was sent is received in it.
TEST(Trace, HasTheFirstMicrobatchesAlone) {
  Experiment e = experiment("pipedream", 3, 2);
  Pipeline pipeline = make_pipeline(e);
  const SyntheticBatches batches = tiny_batches();
  Segment segment;
  segment.schedule = &pipeline.schedule();
  segment.batches = &batches;
  segment.microbatches = 12;
  segment.traced_microbatches = 5;
  Recorder recorder;
  const SegmentReport report = make_executor("replay")->run(pipeline, segment, recorder);
  for (const WorkerReport& worker : report.workers) {
    std::map<ActionKind, int> count;
    for (const TimedAction& timed : worker.trace) ++count[timed.action.kind];
    EXPECT_EQ(count[ActionKind::Forward], 5);
    EXPECT_EQ(count[ActionKind::Backward], 5);
    EXPECT_EQ(count[ActionKind::Update], 3) << "of windows of two";
  }
}

TEST(Trace, HasEveryActionInOrder) {
  Experiment e = experiment("amdp", 4, 4);
  e.executor = "threads";
  Pipeline pipeline = make_pipeline(e);
  const SyntheticBatches batches = tiny_batches();
  Segment segment;
  segment.schedule = &pipeline.schedule();
  segment.batches = &batches;
  segment.microbatches = 12;
  segment.traced_microbatches = 12;
  Recorder recorder;
  const SegmentReport report = make_executor(e.executor)->run(pipeline, segment, recorder);
  for (int worker = 0; worker < 4; ++worker) {
    const auto& trace = report.workers[worker].trace;
    size_t i = 0;
    double last = 0;
    for (ProgramCursor cursor(pipeline.schedule(), worker, 12); cursor.peek(); cursor.advance(), ++i) {
      ASSERT_LT(i, trace.size());
      EXPECT_EQ(trace[i].action, *cursor.peek());
      EXPECT_GE(trace[i].start, last);
      EXPECT_GE(trace[i].end, trace[i].start);
      last = trace[i].end;
    }
    EXPECT_EQ(i, trace.size());
  }
  EXPECT_EQ(report.costs[2].at(ActionKind::Forward).count, 12);
  EXPECT_GT(report.costs[2].at(ActionKind::Backward).seconds, 0);
  EXPECT_EQ(report.costs[2].at(ActionKind::Update).count, 3);
}

}  // namespace
}  // namespace gyre
