// Workers share nothing but messages: a transport that copies every message through bytes, and gives every lease back
// at once, changes no bit.
#include "gyre/runtime/transport/link.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "copying_transport.h"
#include "fixture.h"
#include "gyre/core/error.h"
#include "gyre/runtime/reports.h"
#include "gyre/runtime/transport/memory_transport.h"

namespace gyre {
namespace {

using namespace testing_support;

TEST(Transport, CopiesOfEveryMessageGiveTheSameBitsUnderEverySchedule) {
  std::vector<Experiment> all = every_kind();
  for (const std::string plain : {"gpipe", "1f1b", "pipedream"}) all.push_back(experiment(plain, 4, 4));
  for (Experiment e : all) {
    for (const at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
      for (const WeightPolicy weights :
           {WeightPolicy::Stash, WeightPolicy::Latest, WeightPolicy::Predict, WeightPolicy::Corrected}) {
        e.compute = compute;
        e.weights = weights;
        e.executor = "replay";
        const Outcome expected = run_experiment(e, 6);
        expect_same(expected, run_experiment(e, 6, copying), name_of(e));
        if (compute == at::kFloat || weights != WeightPolicy::Stash) continue;
        e.executor = "threads";
        expect_same(expected, run_experiment(e, 6, copying), name_of(e) + ", threads");
      }
    }
  }
}

// Owners that share the norm of the whole model, one on a worker or several.
TEST(Transport, CopiesGiveTheSameBitsWhereNormsAreGlobal) {
  std::vector<Experiment> all = every_kind();
  for (const std::string plain : {"gpipe", "1f1b"}) all.push_back(experiment(plain, 4, 4));
  int flushes = 0;
  for (Experiment e : all) {
    if (!make_schedule({e.schedule, e.stages, e.window}).has_flush()) continue;
    ++flushes;
    e.clip_scope = ClipScope::Global;
    e.learning_rate = 0.02;
    const Outcome expected = run_experiment(e, 6);
    expect_same(expected, run_experiment(e, 6, copying), name_of(e));
    e.executor = "threads";
    expect_same(expected, run_experiment(e, 6), name_of(e) + ", threads");
    expect_same(expected, run_experiment(e, 6, copying), name_of(e) + ", threads, copied");
  }
  EXPECT_GE(flushes, 7);
}

TEST(Transport, ADrainThroughCopiesIsTheSameDrain) {
  for (Experiment e :
       {experiment("amdp", 6, 12), experiment("interleaved-1f1b", 4, 4), experiment("pipedream", 4, 1)}) {
    for (const char* executor : {"replay", "threads"}) {
      e.executor = executor;
      std::atomic<bool> stop = false;
      StopAfter observer(2 * e.window + 1, stop);
      Pipeline stopped = make_pipeline(e);
      const SegmentReport report = run_segment(stopped, e, 0, 1000, observer, &stop, copying);
      EXPECT_EQ(report.microbatches % e.window, 0);
      EXPECT_LT(report.microbatches, 1000 * e.window);
      const Outcome planned = run_experiment(e, report.microbatches / e.window);
      EXPECT_EQ(planned.recorder.losses, observer.recorder.losses) << name_of(e) << " " << executor;
      EXPECT_TRUE(same_bits(planned.weights, stopped.weights())) << name_of(e) << " " << executor;
    }
  }
}

TEST(MemoryTransport, ALinkHasRoomForItsCapacityAndGivesMessagesByNumberOrInOrder) {
  const Doorbells bells(2);
  MemoryTransport transport(bells);
  const LinkId id{LinkKind::Gradient, 1, 3};
  const LinkEnds ends{0, 1, 3};
  const auto receiver = transport.receiver(id, ends);
  const auto sender = transport.sender(id, ends);
  EXPECT_FALSE(receiver->try_receive());
  const uint64_t ticket = bells.of(1).ticket();
  for (const int64_t number : {5, 6, 7}) {
    EXPECT_TRUE(sender->has_room());
    sender->send({number, {}, {0.5}, {}});
  }
  EXPECT_EQ(bells.of(1).ticket(), ticket + 3);
  EXPECT_FALSE(sender->has_room());
  try {
    sender->send({8, {}, {}, {}});
    FAIL() << "a message more than there is room for";
  } catch (const RunError& error) {
    EXPECT_STREQ(error.what(), "the gradient link of 1:3: more than the 3 messages the schedule allows");
  }
  const uint64_t room = bells.of(0).ticket();
  EXPECT_EQ(receiver->try_receive(6)->number, 6);
  EXPECT_EQ(bells.of(0).ticket(), room + 1) << "who waits for room hears of it";
  EXPECT_FALSE(receiver->try_receive(6));
  EXPECT_EQ(receiver->try_receive()->number, 5);
  EXPECT_EQ(receiver->try_receive()->number, 7);
}

TEST(Links, AreNamedByWhatTheyConnect) {
  EXPECT_EQ(to_string(LinkId{LinkKind::Activation, 1, 2}), "the activation link of 1:2");
  EXPECT_EQ(to_string(LinkId{LinkKind::NormSum, 0, 2, 3}), "the norm sum link of 0:2, shard 3");
  EXPECT_EQ(to_string(LinkId::of_worker(LinkKind::Report, 4)), "the report link of worker 4");
  EXPECT_EQ(to_string(LinkId::of_rank(LinkKind::Answer, 1, 2)), "the answer link of rank 1, line 2");
}

TEST(Reports, ComeOutOfMessagesAsTheyWentIn) {
  const auto loss = std::get<LossReport>(to_report(to_message(LossReport{12, at::scalar_tensor(-0.25)})));
  EXPECT_EQ(loss.microbatch, 12);
  EXPECT_EQ(loss.loss.item<double>(), -0.25);
  const at::Tensor norms = at::tensor({0.5, 1e300}, at::kDouble);
  const auto update = std::get<UpdateReport>(to_report(to_message(UpdateReport{3, 1, 9, norms, 1e150})));
  EXPECT_EQ(update.stage, 3);
  EXPECT_EQ(update.shard, 1);
  EXPECT_EQ(update.window, 9);
  EXPECT_TRUE(update.squared_norms.equal(norms));
  EXPECT_EQ(update.norm, 1e150);
  EXPECT_EQ(std::get<HeldReport>(to_report(to_message(HeldReport{7}))).admitted, 7);
  EXPECT_EQ(to_limit(limit_message(44)), 44);
  EXPECT_FALSE(to_limit(hold_message()));

  FinalReport end;
  end.worker.busy_seconds = 1.25;
  end.worker.trace = {{Action{ActionKind::Adopt, 2, 1, int64_t{1} << 60}, 0.25, 0.5, 0.125},
                      {Action{ActionKind::Adopt, 2, 1, 3}, 0.5, 0.75, {}}};
  end.costs = {{}, {{ActionKind::Forward, {3, 0.5, 0.25}}, {ActionKind::Update, {1, 0, 2}}}};
  end.replicas.push_back({1, {100, 200}, {{0, 5}, {3, 2}}, {{1, 7}}});
  const auto found = std::get<FinalReport>(to_report(to_message(end)));
  EXPECT_EQ(found.worker.busy_seconds, 1.25);
  ASSERT_EQ(found.worker.trace.size(), 2u);
  EXPECT_EQ(found.worker.trace[0].came, 0.125);
  EXPECT_FALSE(found.worker.trace[1].came);
  EXPECT_EQ(found.worker.trace[0].action, end.worker.trace[0].action);
  EXPECT_EQ(found.worker.trace[0].end, 0.5);
  ASSERT_EQ(found.costs.size(), 2u);
  EXPECT_EQ(found.costs[1].at(ActionKind::Forward).seconds, 0.5);
  EXPECT_EQ(found.costs[1].at(ActionKind::Update).first_seconds, 2);
  ASSERT_EQ(found.replicas.size(), 1u);
  EXPECT_EQ(found.replicas[0].sizes.output_bytes, 200);
  EXPECT_EQ(found.replicas[0].delay, end.replicas[0].delay);
  EXPECT_EQ(found.replicas[0].mismatch, end.replicas[0].mismatch);
}

}  // namespace
}  // namespace gyre
