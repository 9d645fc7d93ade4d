// How ranks find each other, and who tells what if one of them does not come, cannot be reached or goes before all have
// met.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <future>
#include <nlohmann/json.hpp>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

#include "gyre/core/error.h"
#include "gyre/core/stopped.h"
#include "gyre/runtime/ranks/ranks.h"
#include "member.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using namespace testing_support;

// Meets everybody, but cannot connect to one of them.
class BlockedPort final : public SameRendezvous {
 public:
  BlockedPort(std::unique_ptr<Rendezvous> open, std::string blocked)
      : SameRendezvous(std::move(open)), blocked_(std::move(blocked)) {}
  std::unique_ptr<Wire> connect(const std::string& name, bool first, const std::string& with) override {
    if (name == blocked_) throw RunError("the port is blocked");
    return SameRendezvous::connect(name, first, with);
  }

 private:
  std::string blocked_;
};

// Comes from another machine, whatever its host's name.
class OtherMachine final : public SameRendezvous {
 public:
  using SameRendezvous::SameRendezvous;
  bool leave_first(const std::string& key, const std::string& note) override {
    auto hello = nlohmann::json::parse(note);
    hello["space"] = "another-machine pid:[1]";
    return SameRendezvous::leave_first(key, hello.dump());
  }
};

TEST(Ranks, OfTwoMachinesOfOneNameDoNotConnectOverLoopback) {
  const TemporaryDirectory place;
  const auto rendezvous = [&] {
    return make_rendezvous({.directory = place.path().string(), .world = 2, .deadline = std::chrono::seconds(2)});
  };
  std::jthread rank_1([&] {
    Ranks ranks(1, 2, "job", std::make_unique<OtherMachine>(rendezvous()));
    EXPECT_THROW(ranks.meet({}, {}, 60), ToldElsewhere);
  });
  Ranks ranks(0, 2, "job", rendezvous());
  const std::string error = error_of([&] {
    try {
      ranks.meet({}, {}, 60);
    } catch (const InputError& error) {
      ranks.refuse(error);
      throw;
    }
  });
  EXPECT_NE(error.find("over 127.0.0.1; give all ranks --interface"), std::string::npos) << error;
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

// Meets everybody, but takes its time to connect to one of them.
class SlowPort final : public SameRendezvous {
 public:
  SlowPort(std::unique_ptr<Rendezvous> open, std::string slow, std::chrono::milliseconds pause)
      : SameRendezvous(std::move(open)), slow_(std::move(slow)), pause_(pause) {}
  std::unique_ptr<Wire> connect(const std::string& name, bool first, const std::string& with) override {
    if (name == slow_) std::this_thread::sleep_for(pause_);
    return SameRendezvous::connect(name, first, with);
  }

 private:
  std::string slow_;
  std::chrono::milliseconds pause_;
};

// While ranks 1 and 2 connect with each other, as long as --meet-within allows, they say nothing to rank 0.
TEST(Ranks, ThoseThatConnectWithEachOtherAreNotSilent) {
  const TemporaryDirectory place;
  const auto rendezvous = [&] { return make_rendezvous({.directory = place.path().string(), .world = 3}); };
  const std::set<std::pair<int, int>> pairs = {{1, 2}};
  constexpr double kSilence = 0.5;
  std::promise<void> looked;
  const auto seen = looked.get_future().share();
  std::jthread rank_1([&] {
    Ranks ranks(1, 3, "job", rendezvous());
    ranks.meet({}, pairs, kSilence);
    seen.wait();
  });
  std::jthread rank_2([&] {
    Ranks ranks(2, 3, "job", std::make_unique<SlowPort>(rendezvous(), "link/1-2", std::chrono::milliseconds(1500)));
    ranks.meet({}, pairs, kSilence);
    seen.wait();
  });
  Ranks ranks(0, 3, "job", rendezvous());
  ranks.meet({}, pairs, kSilence);
  std::this_thread::sleep_for(std::chrono::duration<double>(2 * kSilence));
  EXPECT_EQ(ranks.failure(), std::nullopt);
  looked.set_value();
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
  } catch (const Stopped& error) {
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

}  // namespace
}  // namespace gyre
