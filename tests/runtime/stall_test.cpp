// What an executor reports while workers take long, and when it is interrupted. Batches that block until they are
// released stand for a slow machine; nothing here depends on the speed of the machine that runs the tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fixture.h"
#include "gyre/core/error.h"
#include "gyre/runtime/evaluate.h"

namespace gyre {
namespace {

using namespace testing_support;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kSlowMicrobatch = 3;

// Makes the first stage's forward of one microbatch call `enter` and then last until go_on().
class SlowBatches final : public BatchSource {
 public:
  explicit SlowBatches(std::function<void()> enter, int64_t slow = kSlowMicrobatch)
      : enter_(std::move(enter)), slow_(slow) {}
  Batch batch(int64_t index) const override {
    if (index == slow_) {
      enter_();
      released_.wait();
    }
    return tiny_batches().batch(index);
  }
  int64_t tokens_per_batch() const override { return tiny_batches().tokens_per_batch(); }
  void go_on() {
    std::call_once(released_once_, [this] { release_.set_value(); });
  }

 private:
  std::function<void()> enter_;
  int64_t slow_;
  std::once_flag released_once_;
  std::promise<void> release_;
  std::shared_future<void> released_ = release_.get_future().share();
};

// Records the events that it gets besides losses, and calls the test's functions.
struct Listener final : SegmentObserver {
  void on_loss(int64_t, double) override {}
  void on_update(int, int64_t, const std::vector<double>&) override {}
  void on_interrupt() override {
    told.push_back("interrupt");
    if (at_interrupt) at_interrupt();
  }
  void on_drain(int64_t microbatches) override {
    drained_at = microbatches;
    told.push_back("drain");
  }
  void on_slow_action(const std::string& what) override {
    told.push_back(what);
    if (at_slow) at_slow();
  }
  void on_stuck(const Error& why) override {
    told.push_back(why.what());
    exit_code = why.exit_code();
    if (at_stuck) at_stuck();
  }
  int64_t drained_at = -1;
  int exit_code = 0;
  std::vector<std::string> told;
  std::function<void()> at_interrupt, at_slow, at_stuck;
};

SegmentReport run(const std::string& executor, double stall_seconds, const BatchSource& batches,
                  SegmentObserver& observer, const std::stop_source& interrupt) {
  Experiment e;
  e.executor = executor;
  e.stall_seconds = stall_seconds;
  Pipeline pipeline = make_pipeline(e);
  Segment segment;
  segment.schedule = &pipeline.schedule();
  segment.batches = &batches;
  segment.microbatches = 12;
  segment.stop = interrupt.get_token();
  segment.wants_drain = [token = interrupt.get_token()] { return token.stop_requested(); };
  return make_executor(executor)->run(pipeline, segment, observer);
}

TEST(SlowAction, IsToldAndTheRunGoesOn) {
  SlowBatches batches([] {});
  Listener listener;
  listener.at_slow = [&] { batches.go_on(); };
  EXPECT_EQ(run("threads", 0.2, batches, listener, std::stop_source()).microbatches, 12);
  EXPECT_THAT(listener.told, Contains(HasSubstr("worker 0 has been inside 0F3 for ")));
}

TEST(Interrupt, IsAnsweredAtOnceThoughAWorkerComputes) {
  for (const std::string executor : {"threads", "replay"}) {
    for (const int64_t slow : {int64_t{0}, kSlowMicrobatch}) {  // before microbatch 0 nothing else wakes the caller
      std::stop_source interrupt;
      SlowBatches batches([&] { interrupt.request_stop(); }, slow);
      Listener listener;
      // With threads, the worker goes on only after the answer has come. Replay has one thread, which answers
      // afterwards.
      if (executor == "threads") listener.at_interrupt = [&] { batches.go_on(); };
      if (executor == "replay") batches.go_on();
      const SegmentReport report = run(executor, 1e6, batches, listener, interrupt);
      EXPECT_EQ(listener.told, (std::vector<std::string>{"interrupt", "drain"})) << executor;
      EXPECT_EQ(listener.drained_at, slow + 1) << executor;
      EXPECT_EQ(report.microbatches, listener.drained_at) << executor;
    }
  }
}

// The interrupt comes while a drain for a checkpoint is under way: where it ends is still reported, once. It comes by
// itself, or is found where the segment asks whether to drain, as that of another process is.
TEST(Interrupt, OfASegmentThatDrainsAlreadyIsToldWhereItEnds) {
  struct Interrupting final : SegmentObserver {
    void on_loss(int64_t, double) override {
      if (++losses == 1) stop = true;
      if (!is_asked_for) interrupt_when_due();
    }
    void interrupt_when_due() {
      if (losses >= 3) interrupt.request_stop();
    }
    void on_update(int, int64_t, const std::vector<double>&) override {}
    void on_drain(int64_t microbatches) override { drained_at.push_back(microbatches); }
    bool is_asked_for = false;
    int64_t losses = 0;
    std::atomic<bool> stop = false;
    std::stop_source interrupt;
    std::vector<int64_t> drained_at;
  };
  Experiment e;
  e.window = 4;  // the rest of the window goes on while the segment drains
  const SyntheticBatches batches = tiny_batches();
  for (const bool is_asked_for : {false, true}) {
    Pipeline pipeline = make_pipeline(e);
    Interrupting observer;
    observer.is_asked_for = is_asked_for;
    Segment segment;
    segment.schedule = &pipeline.schedule();
    segment.batches = &batches;
    segment.microbatches = 100;
    segment.wants_drain = [&] {
      if (is_asked_for) observer.interrupt_when_due();
      return observer.stop.load();
    };
    segment.stop = observer.interrupt.get_token();
    const SegmentReport report = make_executor("replay")->run(pipeline, segment, observer);
    EXPECT_LT(report.microbatches, 100);
    EXPECT_EQ(observer.drained_at, std::vector<int64_t>{report.microbatches}) << is_asked_for;
  }
}

// Seconds since construction or restart().
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - since_).count(); }
  void restart() { since_ = Clock::now(); }
  void let_pass(double seconds) const {
    while (this->seconds() < seconds) std::this_thread::yield();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point since_ = Clock::now();
};

TEST(SlowAction, IsToldOnceHoweverOftenItIsLookedAt) {
  constexpr double kStall = 0.05;
  std::stop_source interrupt;
  SlowBatches batches([&] { interrupt.request_stop(); });
  Listener listener;
  listener.at_stuck = [&] { batches.go_on(); };  // after many looks
  const Stopwatch watch;
  run("threads", kStall, batches, listener, interrupt);
  const auto told = std::count_if(listener.told.begin(), listener.told.end(), [](const std::string& what) {
    return what.find("worker 0 has been inside 0F3") != std::string::npos;
  });
  EXPECT_GE(told, 1);
  // Reported again only after a time in which the caller itself did not run, as happens on a busy machine.
  EXPECT_LE(static_cast<double>(told), 1 + watch.seconds() / (2 * kStall));
}

TEST(SlowAction, IsWaitedForHoweverLongItTakes) {
  constexpr double kStall = 0.05;
  SlowBatches batches([] {});
  Listener listener;
  const std::jthread later([&] {
    Stopwatch().let_pass(1.5 * drain_deadline(kStall));
    batches.go_on();
  });
  EXPECT_EQ(run("threads", kStall, batches, listener, std::stop_source()).microbatches, 12);
  EXPECT_THAT(listener.told, Not(Contains(HasSubstr("given up"))));
}

TEST(Interrupt, TimeInWhichNobodyLookedIsNotTheDrains) {
  constexpr double kStall = 0.05;
  std::stop_source interrupt;
  SlowBatches batches([&] { interrupt.request_stop(); });
  Listener listener;
  Stopwatch watch;
  double given_up_after = 0;
  listener.at_slow = [&, blocked = false]() mutable {  // once, as if printing a message blocked
    if (std::exchange(blocked, true)) return;
    Stopwatch().let_pass(2 * drain_deadline(kStall));
    watch.restart();
  };
  listener.at_stuck = [&] {
    given_up_after = watch.seconds();
    batches.go_on();
  };
  run("threads", kStall, batches, listener, interrupt);
  EXPECT_GE(given_up_after, 0.8 * drain_deadline(kStall));
}

TEST(Interrupt, ADrainWhoseWorkerDoesNotComeBackIsToldAsStuck) {
  std::stop_source interrupt;
  SlowBatches batches([&] { interrupt.request_stop(); });
  Listener listener;
  listener.at_stuck = [&] { batches.go_on(); };
  EXPECT_EQ(run("threads", 0.2, batches, listener, interrupt).microbatches, kSlowMicrobatch + 1);
  EXPECT_THAT(listener.told, Contains("interrupt"));
  EXPECT_THAT(listener.told, Contains(AllOf(HasSubstr("the drain is given up: no action has finished for "),
                                            HasSubstr("worker 0 inside 0F3"))));
}

// An evaluation does not drain; but it is given up like a drain.
TEST(Interrupt, AnEvaluationWhoseWorkerDoesNotComeBackIsToldAsStuck) {
  Experiment e;
  e.stall_seconds = 0.1;
  Pipeline pipeline = make_pipeline(e);
  std::stop_source interrupt;
  SlowBatches batches([&] { interrupt.request_stop(); });
  Listener listener;
  listener.at_stuck = [&] { batches.go_on(); };
  const double all = evaluate(pipeline, *make_executor("threads"), batches, 12, 0, ModelWeights::Trained, &listener,
                              interrupt.get_token());
  EXPECT_THAT(listener.told, Contains(AllOf(HasSubstr("the evaluation is given up: no action has finished for "),
                                            HasSubstr("worker 0 inside 0F3"))));
  EXPECT_EQ(all, evaluate(pipeline, *make_executor("replay"), tiny_batches(), 12, 0)) << "it went on to its end";
}

// The error comes from the observer while a worker is inside an action.
TEST(SlowAction, OfASegmentThatHasFailedIsToldWithTheErrorAndGivenUp) {
  SlowBatches batches([] {});
  Listener listener;
  listener.at_slow = [failed = false]() mutable {
    if (!std::exchange(failed, true)) throw NoRoom("the disk is full");
  };
  listener.at_stuck = [&] { batches.go_on(); };
  EXPECT_THROW(run("threads", 0.05, batches, listener, std::stop_source()), NoRoom);
  EXPECT_THAT(listener.told,
              Contains(AllOf(HasSubstr("worker 0 has been inside 0F3"),
                             HasSubstr("the run has failed, and ends when it returns: the disk is full"))));
  EXPECT_THAT(listener.told, Contains(AllOf(HasSubstr("the disk is full; "), HasSubstr("not all workers have returned"),
                                            HasSubstr("worker 0 inside 0F3"))));
  EXPECT_EQ(listener.exit_code, kNoRoom);
}

}  // namespace
}  // namespace gyre
