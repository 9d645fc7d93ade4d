// Ranks that have met watch each other: beats, silence, clocks.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "gyre/runtime/ranks/ranks.h"
#include "member.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using namespace testing_support;

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

TEST(Ranks, TheQuickestOfTheLastAnswersTellsTheTime) {
  ClockOffset clock;
  clock.add(10, 110.5, 12);  // 99.5, wrong by at most 1
  EXPECT_DOUBLE_EQ(clock.offset(), 99.5);
  clock.add(20, 120.125, 20.25);  // 100, wrong by at most 1/8
  EXPECT_DOUBLE_EQ(clock.offset(), 100);
  for (int i = 0; i < 16; ++i) clock.add(30, 140, 31);  // the clocks have drifted since
  EXPECT_DOUBLE_EQ(clock.offset(), 109.5);
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

// As where all get SIGSTOP. Both are held after they have looked at the clock, and rank 0 goes on first.
TEST(Ranks, ThoseThatWereStoppedTogetherBlameNobody) {
  const TemporaryDirectory place;
  const auto rendezvous = [&] { return make_rendezvous({.directory = place.path().string(), .world = 2}); };
  constexpr double kSilence = 1;
  std::promise<void> held, go_on, looked;
  std::jthread rank_1([&] {
    Ranks ranks(1, 2, "job", rendezvous());
    ranks.meet({}, {}, kSilence);
    Doorbell bell;
    bool is_first = true;
    const Ranks::Watch watch(ranks, bell, [&] {
      if (std::exchange(is_first, false)) {
        held.set_value();
        go_on.get_future().wait();
      }
      return RankStatus();
    });
    looked.get_future().wait();
    EXPECT_EQ(ranks.failure(), std::nullopt);
  });
  Ranks ranks(0, 2, "job", rendezvous());
  ranks.meet({}, {}, kSilence);
  held.get_future().wait();
  Doorbell bell;
  std::atomic<int> looks = 0;
  {
    const Ranks::Watch watch(ranks, bell, [&] {
      if (looks++ == 0) std::this_thread::sleep_for(std::chrono::duration<double>(1.5 * kSilence));
      return RankStatus();
    });
    while (looks < 3 && !ranks.failure()) std::this_thread::yield();
    go_on.set_value();
    while (looks < 6 && !ranks.failure()) std::this_thread::yield();
  }
  EXPECT_EQ(ranks.failure(), std::nullopt);
  looked.set_value();
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

}  // namespace
}  // namespace gyre
