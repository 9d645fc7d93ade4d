// What goes wrong in one process of a run, or between two, is told by rank 0.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "gyre/core/error.h"
#include "gyre/runtime/processes_executor.h"
#include "member.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using namespace testing_support;

// Fails at one microbatch.
struct FailingBatches final : BatchSource {
  Batch batch(int64_t index) const override {
    if (index == 9) throw RunError("the disk of this host has gone");
    return good.batch(index);
  }
  int64_t tokens_per_batch() const override { return good.tokens_per_batch(); }
  SyntheticBatches good = tiny_batches();
};

// The batch of one microbatch comes only when it is let go.
struct HeldBatches final : BatchSource {
  Batch batch(int64_t index) const override {
    if (index == 3) let_go.get_future().wait();
    return good.batch(index);
  }
  int64_t tokens_per_batch() const override { return good.tokens_per_batch(); }
  SyntheticBatches good = tiny_batches();
  mutable std::promise<void> let_go;
};

// Everybody connects, but what one sends to another is lost on the way, as where only the way between two hosts is cut.
class CutLink final : public SameRendezvous {
 public:
  CutLink(std::unique_ptr<Rendezvous> open, std::string cut) : SameRendezvous(std::move(open)), cut_(std::move(cut)) {}
  std::unique_ptr<Wire> connect(const std::string& name, bool first, const std::string& with) override {
    auto wire = SameRendezvous::connect(name, first, with);
    return name == cut_ ? std::make_unique<Mute>(std::move(wire)) : std::move(wire);
  }

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

// A rendezvous whose wires first bring a large message for nobody, slowly.
class SlowLink final : public SameRendezvous {
 public:
  using SameRendezvous::SameRendezvous;
  std::unique_ptr<Wire> connect(const std::string& name, bool first, const std::string& with) override {
    return std::make_unique<Slow>(SameRendezvous::connect(name, first, with));
  }

 private:
  struct Slow final : Wire {
    explicit Slow(std::unique_ptr<Wire> given) : wire(std::move(given)) {
      Envelope envelope;
      envelope.message.tensors = {at::zeros({60 * static_cast<int64_t>(kFrameBytes)}, at::kByte)};
      large = std::make_shared<FrameWriter>(std::move(envelope));
    }
    std::unique_ptr<Transfer> send(at::Tensor bytes) override { return wire->send(std::move(bytes)); }
    std::unique_ptr<Transfer> receive(at::Tensor bytes) override {
      if (large->done()) return wire->receive(std::move(bytes));
      large->next(static_cast<std::byte*>(bytes.data_ptr()));
      return std::make_unique<Pause>();
    }
    std::unique_ptr<Wire> wire;
    std::shared_ptr<FrameWriter> large;
  };
  struct Pause final : Transfer {
    void wait() override { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }
    void abort() override {}
  };
};

TEST(Processes, AMessageThatTakesLongIsNoStall) {
  const TemporaryDirectory place;
  Experiment e = experiment("pipedream", 2, 1);
  e.stall_seconds = 1;  // the message takes three
  const SyntheticBatches batches = tiny_batches();
  Follower rank_1(e, 1, 2, place.path().string(), batches);
  Member member(e, 0, 2, std::make_unique<SlowLink>(make_rendezvous({.directory = place.path().string(), .world = 2})));
  member.meet({});
  ProcessesExecutor executor(member.ranks, member.map);
  Recorder recorder;
  EXPECT_EQ(run_segment(member.pipeline, executor, 0, 8, recorder).microbatches, 8);
  executor.end_run(RunEnd::Finished);
}

// A rendezvous with one connection on which what is sent comes late once, as where a packet is lost.
class LateLink final : public SameRendezvous {
 public:
  LateLink(std::unique_ptr<Rendezvous> open, std::string late)
      : SameRendezvous(std::move(open)), late_(std::move(late)) {}
  std::unique_ptr<Wire> connect(const std::string& name, bool first, const std::string& with) override {
    auto wire = SameRendezvous::connect(name, first, with);
    return name == late_ ? std::make_unique<Late>(std::move(wire)) : std::move(wire);
  }

 private:
  struct Sent final : Transfer {
    explicit Sent(std::shared_future<void> given) : sent(std::move(given)) {}
    void wait() override { sent.get(); }
    void abort() override {}
    std::shared_future<void> sent;
  };
  struct Late final : Wire {
    static constexpr int kLateFrame = 40;
    explicit Late(std::unique_ptr<Wire> given) : wire(std::move(given)) {}
    std::unique_ptr<Transfer> send(at::Tensor bytes) override {
      if (++frames < kLateFrame) return wire->send(std::move(bytes));
      const auto pause = std::chrono::milliseconds(frames == kLateFrame ? 1000 : 0);
      last = std::async(std::launch::async, [this, pause, before = last, bytes] {
               std::this_thread::sleep_for(pause);
               if (before.valid()) before.wait();
               wire->send(bytes)->wait();
             }).share();
      return std::make_unique<Sent>(last);
    }
    std::unique_ptr<Transfer> receive(at::Tensor bytes) override { return wire->receive(std::move(bytes)); }
    std::unique_ptr<Wire> wire;
    int frames = 0;
    std::shared_future<void> last;
  };
  std::string late_;
};

// Without shards, the first replica's version goes to the second, whose gradient comes back by way of the third. So the
// first makes the next versions before it learns that the second has taken those that it sent.
TEST(Processes, ACreditThatComesLateIsNoFault) {
  const TemporaryDirectory place;
  const auto rendezvous = [&] { return make_rendezvous({.directory = place.path().string(), .world = 3}); };
  Experiment e = experiment("1f1b", 1, 1);
  e.replicas = 3;
  e.shard_optimizer = false;
  const SyntheticBatches batches = tiny_batches();
  std::jthread rank_1([&] {
    Member member(e, 1, 3, std::make_unique<LateLink>(rendezvous(), "link/0-1"));
    member.meet({});
    try {
      carry_out_commands(member.pipeline, member.ranks, member.map, {&batches, &batches, {}});
    } catch (const Error&) {  // rank 0 tells
    }
  });
  Follower rank_2(e, 2, 3, place.path().string(), batches);
  Member member(e, 0, 3, place.path().string());
  member.meet({});
  ProcessesExecutor executor(member.ranks, member.map);
  Recorder recorder;
  EXPECT_EQ(run_segment(member.pipeline, executor, 0, 200, recorder).microbatches, 600);
  executor.end_run(RunEnd::Finished);
}

TEST(Processes, ASlowActionOfAnyRankIsToldByRank0) {
  const HeldBatches slow;  // the last stage's forward lasts until rank 0 has heard of it
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
  } listener(slow.let_go);
  const TemporaryDirectory place;
  Experiment e = experiment("pipedream", 2, 1);
  e.stall_seconds = 1;  // less is too little on a busy machine
  Follower other(e, 1, 2, place.path().string(), slow);
  {
    Member member(e, 0, 2, place.path().string());
    member.meet({});
    ProcessesExecutor executor(member.ranks, member.map);
    // If rank 0 fails, the other rank's worker is let go all the same, so that the test fails and does not hang.
    struct LetGo {
      std::promise<void>& held;
      ~LetGo() {
        try {
          held.set_value();
        } catch (const std::future_error&) {  // it was let go
        }
      }
    } const let_go{slow.let_go};
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
  const HeldBatches hanging;
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
    hanging.let_go.set_value();
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

}  // namespace
}  // namespace gyre
