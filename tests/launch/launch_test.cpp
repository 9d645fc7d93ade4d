// All ranks are started with the variables that find_rank reads, get signals, and end together: exit codes, restarts,
// and that no process or directory is left behind.
#include "gyre/launch/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

class LaunchRanks : public ::testing::Test {
 protected:
  // Under nohup or as a script's background job, tests inherit signals that are ignored, and ranks would inherit them.
  LaunchRanks() {
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_DFL);
  }
  // `words`: what each rank does (stand_in.cpp).
  int launch(const std::vector<std::string>& words, int max_restarts = 0) {
    options_.ranks = static_cast<int>(words.size());
    options_.command = words;
    options_.command.insert(options_.command.begin(), GYRE_RANK_STAND_IN);
    options_.again = again_.empty() ? options_.command : again_;
    options_.max_restarts = max_restarts;
    options_.say = [this](const std::string& line) { said_.push_back(line); };
    options_.temporary = temporary_.path();
    SignalQueue signals;
    return launch_ranks(options_, signals);
  }
  std::vector<std::string> left_in_temporary() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(temporary_.path())) names.push_back(entry.path());
    return names;
  }
  std::string file(const std::string& name) const { return files_ / name; }

  LaunchOptions options_;
  std::vector<std::string> again_;  // the command's words if empty
  std::vector<std::string> said_;
  testing_support::TemporaryDirectory temporary_, files_;
};

// The lines that ranks have noted, split into words, by rank.
std::vector<std::vector<std::string>> notes_in(const std::string& file) {
  std::vector<std::vector<std::string>> notes;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    notes.emplace_back(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
  }
  std::ranges::stable_sort(notes, {}, [](const auto& words) { return std::stoi(words[0]); });
  return notes;
}

constexpr size_t kPlaceOfJob = 10, kPlaceOfStore = 12;

TEST_F(LaunchRanks, EachLearnsItsRankAndTheyShareAStore) {
  const std::string note = fmt::format("note:{}", file("notes"));
  EXPECT_EQ(launch({note, note, note}), 0);
  const auto notes = notes_in(file("notes"));
  ASSERT_THAT(notes, SizeIs(3));
  for (size_t rank = 0; rank < 3; ++rank) {
    const auto& words = notes[rank];
    const std::string text = fmt::format("{}", fmt::join(words.begin(), words.begin() + kPlaceOfJob, " "));
    EXPECT_EQ(text, fmt::format("{} of 3 here {} of 3 restart 0 job", rank, rank));
    EXPECT_EQ(words[kPlaceOfJob], notes[0][kPlaceOfJob]);
    EXPECT_THAT(words[kPlaceOfStore], AllOf(notes[0][kPlaceOfStore], StartsWith(temporary_.path().string())));
    EXPECT_EQ(words[kPlaceOfStore + 2], "700");
  }
  EXPECT_THAT(left_in_temporary(), IsEmpty());
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(LaunchRanks, EveryLaunchIsAJobOfItsOwn) {
  std::set<std::string> jobs;
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_EQ(launch({fmt::format("note:{}", file(name))}), 0);
    jobs.insert(notes_in(file(name))[0][kPlaceOfJob]);
  }
  EXPECT_THAT(jobs, SizeIs(3));
}

TEST_F(LaunchRanks, TheFirstThatFailsGivesTheExitCode) {
  EXPECT_EQ(launch({"gather,watch,exit:1", "gather,exit:7"}), 7);
  EXPECT_EQ(launch({"gather,watch,exit:1", "gather,exit:0", "gather,exit:7"}), 7);
  EXPECT_THAT(said_, ElementsAre("rank 1 failed with exit code 7", "rank 2 failed with exit code 7"));
}

TEST_F(LaunchRanks, WhatRankZeroHasToldIsNotToldAgain) {
  for (const char* code : {"2", "3"}) {
    EXPECT_EQ(launch({fmt::format("gather,watch,exit:{}", code), fmt::format("gather,say:why,exit:{}", code)}),
              std::stoi(code));
  }
  EXPECT_EQ(launch({"exit:1", "exit:0"}), 1);
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_THAT(left_in_temporary(), IsEmpty());
}

// A rank that leaves it to another to say what went wrong may be the first to end.
TEST_F(LaunchRanks, ARankThatOnlyFollowsAnotherIsNotNamed) {
  EXPECT_EQ(launch({"gather,watch,exit:1", "gather,exit:1"}), 1);
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_EQ(launch({"gather,once:watch,once:exit:1", "gather,once:exit:1"}, 1), 0);
  EXPECT_THAT(said_, ElementsAre("the run failed; restart 1 of 1"));
  EXPECT_EQ(launch({"gather,watch,exit:0", "gather,exit:1", "gather,say:no fish,exit:1"}), 1);
  EXPECT_THAT(said_.back(), StartsWith("rank 2 failed with exit code 1: no fish ("));
}

TEST_F(LaunchRanks, WhatARankSaidLastIsShown) {
  EXPECT_EQ(launch({"gather,watch,exit:0", "gather,say:beginning,say:out of \033[1mfish,exit:1"}), 1);
  ASSERT_THAT(said_, SizeIs(1));
  EXPECT_THAT(said_[0], StartsWith("rank 1 failed with exit code 1: out of \\x1b[1mfish ("));
  // The log that the message names is kept, and nothing else.
  const std::string log = said_[0].substr(said_[0].rfind('(') + 1, said_[0].rfind(')') - said_[0].rfind('(') - 1);
  EXPECT_EQ(read_file(log), "beginning\nout of \033[1mfish\n");
  EXPECT_THAT(left_in_temporary(), ElementsAre(std::filesystem::path(log).parent_path().string()));
}

TEST_F(LaunchRanks, ASignalIsNamed) {
  EXPECT_EQ(launch({"gather,watch,exit:1", fmt::format("gather,die:{}", SIGKILL)}), 1);
  EXPECT_EQ(launch({fmt::format("die:{}", SIGSEGV)}), 1);
  EXPECT_THAT(said_, ElementsAre("rank 1 was killed by SIGKILL", "rank 0 was killed by SIGSEGV"));
  EXPECT_THAT(left_in_temporary(), IsEmpty());
}

// A rank that does not notice another's failure, or that is stopped, is killed.
TEST_F(LaunchRanks, NobodyGoesOnAlone) {
  options_.patience = {};
  EXPECT_EQ(launch({"gather,ignore", "gather,exit:1", fmt::format("gather,die:{}", SIGSTOP)}), 1);
  EXPECT_THAT(said_, ElementsAre("rank 1 failed with exit code 1; killed, since they went on: 0, 2"));
  EXPECT_EQ(launch({"gather,exit:9", "gather,ignore"}), 9);
  EXPECT_THAT(left_in_temporary(), IsEmpty());
}

TEST_F(LaunchRanks, ASignalToStopIsPassedOnToAll) {
  for (const auto& [signal, code] : {std::pair{SIGINT, 130}, {SIGTERM, 143}, {SIGHUP, 143}}) {
    EXPECT_EQ(launch({fmt::format("gather,tell:{},drain", signal), "gather,drain", "gather,drain"}, 5), code);
    // A rank that does not handle the signal yet is killed by it.
    EXPECT_EQ(launch({fmt::format("gather,tell:{},drain", signal), fmt::format("gather,hear:{0},die:{0}", signal)}),
              code);
    // A rank may end with 0 all the same.
    EXPECT_EQ(launch({fmt::format("gather,tell:{},drain", signal), "gather,exit:0"}), code);
  }
  EXPECT_EQ(launch({fmt::format("gather,tell:{0},hear:{0},exit:0", SIGINT), "gather,exit:0"}), 0);
  // What the launcher was told counts, where a rank has it from another rank.
  EXPECT_EQ(launch({fmt::format("gather,tell:{0},hear:{0},exit:143", SIGINT), "gather,drain"}), 130);
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_THAT(left_in_temporary(), IsEmpty());
}

TEST_F(LaunchRanks, ASecondSignalKills) {
  options_.patience = std::chrono::hours(1);
  options_.same_signal_within = {};
  for (const auto& [signal, code] : {std::pair{SIGINT, 130}, {SIGTERM, 143}, {SIGHUP, 143}}) {
    EXPECT_EQ(launch({fmt::format("gather,tell:{0},hear:{0},tell:{1},ignore", signal, SIGTERM), "gather,ignore"}, 5),
              code);
  }
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_THAT(left_in_temporary(), IsEmpty());
}

// A shell and the kernel both send SIGHUP where a terminal is closed, and `timeout` sends SIGTERM twice.
TEST_F(LaunchRanks, TheSameRequestTwiceDoesNotKill) {
  options_.patience = std::chrono::hours(1);
  options_.same_signal_within = std::chrono::hours(1);
  for (const auto& [signal, code] : {std::pair{SIGINT, 130}, {SIGTERM, 143}, {SIGHUP, 143}}) {
    const std::string notes = file(std::to_string(signal));
    // Rank 0 notes that it was not killed, once the launcher has passed on a signal that came after both.
    EXPECT_EQ(launch({fmt::format("gather,tell:{0},hear:{0},tell:{0},tell:{1},hear:{1},note:{2},exit:{3}", signal,
                                  SIGUSR1, notes, code),
                      "gather,drain"},
                     5),
              code);
    EXPECT_THAT(notes_in(notes), SizeIs(1)) << signal;
  }
}

// Before the run has begun, a rank that gets ready for long is not waited for once another has ended. Afterwards ranks
// take the time that they need.
TEST_F(LaunchRanks, WhoeverStopsWithoutTheOthersIsNotWaitedForUnlessTheRunHasBegun) {
  options_.patience = {};
  EXPECT_EQ(launch({fmt::format("gather,tell:{},ignore", SIGTERM), "gather,drain"}), 143);
  EXPECT_EQ(
      launch({fmt::format("gather,begin,tell:{},watch,note:{},exit:143", SIGTERM, file("notes")), "gather,drain"}),
      143);
  EXPECT_THAT(notes_in(file("notes")), SizeIs(1));
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(LaunchRanks, AFailureWhileStoppingIsAFailureAndNoReasonToStartAgain) {
  EXPECT_EQ(launch({fmt::format("gather,tell:{},drain", SIGTERM), fmt::format("gather,hear:{},exit:1", SIGTERM)}, 5),
            1);
  EXPECT_THAT(said_, ElementsAre("rank 1 failed with exit code 1"));
}

TEST_F(LaunchRanks, Sigusr1IsForRankZero) {
  EXPECT_EQ(launch({fmt::format("gather,tell:{0},hear:{0},exit:0", SIGUSR1), "gather,exit:0"}), 0);
}

TEST_F(LaunchRanks, IgnoredSignals) {
  ::signal(SIGHUP, SIG_IGN);  // as nohup does: it stays ignored
  EXPECT_EQ(launch({fmt::format("gather,tell:{},exit:0", SIGHUP), "gather,exit:0"}), 0);
  ::signal(SIGINT, SIG_IGN);  // as a shell does for background jobs: it is handled all the same
  EXPECT_EQ(launch({fmt::format("gather,tell:{},drain", SIGINT), "gather,drain"}), 130);
  for (const int signal : {SIGHUP, SIGINT}) ::signal(signal, SIG_DFL);  // for the tests that follow
}

TEST_F(LaunchRanks, AFailedAttemptIsFollowedByAnother) {
  EXPECT_EQ(launch({"gather,once:watch,once:exit:1", fmt::format("gather,once:die:{}", SIGKILL)}, 3), 0);
  EXPECT_THAT(said_, ElementsAre("rank 1 was killed by SIGKILL; restart 1 of 3"));
  EXPECT_THAT(left_in_temporary(), IsEmpty());
}

// As where logs are cleared away while a run goes on.
TEST_F(LaunchRanks, ALogThatIsGoneIsNoReasonToStop) {
  options_.logs = file("logs");
  const std::string log = options_.logs / "rank-1.log";
  EXPECT_EQ(
      launch({"gather,once:watch,once:exit:1", fmt::format("gather,once:remove:{},once:die:{}", log, SIGKILL)}, 3), 0);
  EXPECT_THAT(said_, ElementsAre(StartsWith("rank 1 was killed by SIGKILL; restart 1 of 3")));
}

// As by a program that cleans up TMPDIR.
TEST_F(LaunchRanks, ADirectoryUnderTmpdirThatIsGoneIsNoReasonToStop) {
  EXPECT_EQ(launch({"gather,once:watch,once:exit:1",
                    fmt::format("gather,once:clear:{},once:die:{}", temporary_.path().string(), SIGKILL)},
                   3),
            0);
  EXPECT_THAT(said_, ElementsAre("rank 1 was killed by SIGKILL; restart 1 of 3"));
  EXPECT_THAT(left_in_temporary(), IsEmpty());
}

TEST_F(LaunchRanks, ALogThatCannotBeMadeIsNoReasonToStopARestart) {
  options_.logs = file("logs");
  std::filesystem::create_directories(options_.logs / "rank-1.restart-1.log");
  EXPECT_EQ(launch({"gather,once:watch,once:exit:1", fmt::format("gather,once:die:{}", SIGKILL)}, 3), 0);
  EXPECT_THAT(said_, ElementsAre("rank 1 was killed by SIGKILL; restart 1 of 3"));
}

TEST_F(LaunchRanks, AttemptsAreCountedAndHaveStoresOfTheirOwn) {
  again_ = {GYRE_RANK_STAND_IN, fmt::format("note:{},exit:1", file("again"))};
  EXPECT_EQ(launch({fmt::format("note:{},claim,exit:1", file("first"))}, 3), 1);
  EXPECT_THAT(said_, ElementsAre("the run failed; restart 1 of 3", "the run failed; restart 2 of 3",
                                 "the run failed; restart 3 of 3"));
  auto notes = notes_in(file("first"));
  ASSERT_THAT(notes, SizeIs(1));
  for (const auto& words : notes_in(file("again"))) notes.push_back(words);
  ASSERT_THAT(notes, SizeIs(4));
  std::set<std::string> jobs;
  for (size_t attempt = 0; attempt < notes.size(); ++attempt) {
    EXPECT_EQ(notes[attempt][kPlaceOfJob - 2], std::to_string(attempt));
    jobs.insert(notes[attempt][kPlaceOfJob]);
  }
  EXPECT_THAT(jobs, SizeIs(1));
  EXPECT_THAT(left_in_temporary(), IsEmpty());
}

// Whether the run had begun, as attempts 0, 1, ... were told.
std::vector<std::string> begun_in(const std::string& file) {
  std::vector<std::string> begun;
  for (const auto& words : notes_in(file)) begun.push_back(words.back());
  return begun;
}

// A run that was begun is continued, however often its ranks are started again.
TEST_F(LaunchRanks, LaterAttemptsAreToldThatTheRunHasBegun) {
  const std::string note = fmt::format("note:{}", file("begins"));
  EXPECT_EQ(launch({fmt::format("{},once:begin,exit:1", note)}, 2), 1);
  EXPECT_THAT(begun_in(file("begins")), ElementsAre("0", "1", "1"));
  EXPECT_EQ(launch({fmt::format("note:{},exit:1", file("does not"))}, 2), 1);
  EXPECT_THAT(begun_in(file("does not")), ElementsAre("0", "0", "0"));
}

// The words for a restart continue what is there, which may be another run: they are for a run of this launch.
TEST_F(LaunchRanks, AreStartedWithTheFirstWordsUntilTheRunHasAPlaceOfItsOwn) {
  again_ = {GYRE_RANK_STAND_IN, fmt::format("note:{}", file("again"))};
  EXPECT_EQ(launch({fmt::format("note:{},exit:1", file("first"))}, 2), 1);
  EXPECT_THAT(notes_in(file("first")), SizeIs(3));
  EXPECT_FALSE(std::filesystem::exists(file("again")));
}

TEST_F(LaunchRanks, WhatAnotherAttemptCannotMendIsNotTriedAgain) {
  for (const int code : {0, 2, 3, 4, 130, 143}) {
    const std::string name = file(std::to_string(code));
    EXPECT_EQ(launch({fmt::format("note:{},exit:{}", name, code)}, 3), code);
    EXPECT_THAT(notes_in(name), SizeIs(1)) << code;
  }
}

// As where rank 0 cannot print its result. If a rank is killed then, another attempt may print it.
TEST_F(LaunchRanks, WhatIsDoneIsNotDoneAgain) {
  EXPECT_EQ(launch({fmt::format("gather,note:{},finish,watch,exit:1", file("notes")), "gather,exit:0"}, 3), 1);
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_EQ(launch({fmt::format("gather,note:{},finish,watch,exit:0", file("notes")),
                    fmt::format("gather,once:die:{}", SIGKILL)},
                   3),
            0);
  EXPECT_THAT(said_, ElementsAre("rank 1 was killed by SIGKILL; restart 1 of 3"));
  EXPECT_EQ(launch({fmt::format("gather,note:{},finish,once:die:{},exit:0", file("notes"), SIGKILL)}, 3), 0);
  EXPECT_THAT(notes_in(file("notes")), SizeIs(5));
  EXPECT_THAT(left_in_temporary(), IsEmpty());
}

TEST_F(LaunchRanks, LogsStayWhereTheyAreWanted) {
  options_.logs = file("a/logs");
  EXPECT_EQ(launch({"gather,say:zero", "gather,say:one", "gather,say:two,once:exit:1"}, 1), 0);
  EXPECT_EQ(launch({"gather,watch,exit:0", "gather,say:more,exit:1", "gather,exit:0"}), 1);
  EXPECT_EQ(launch({"gather,watch,exit:0", "gather,exit:1"}), 1);  // the output of an earlier launch is not shown
  EXPECT_EQ(read_file(options_.logs / "rank-1.log"), "one\nmore\n");
  EXPECT_EQ(read_file(options_.logs / "rank-1.restart-1.log"), "one\n");
  EXPECT_EQ(read_file(options_.logs / "rank-2.log"), "two\n");
  EXPECT_FALSE(std::filesystem::exists(options_.logs / "rank-0.log"));
  const std::string logs = options_.logs.string();
  EXPECT_THAT(said_,
              ElementsAre(fmt::format("rank 2 failed with exit code 1: two ({}/rank-2.log); restart 1 of 1", logs),
                          fmt::format("rank 1 failed with exit code 1: more ({}/rank-1.log)", logs),
                          "rank 1 failed with exit code 1"));
  EXPECT_THAT(left_in_temporary(), IsEmpty());
}

TEST_F(LaunchRanks, AProgramThatIsNotThereIsNamed) {
  options_.command = options_.again = {file("absent")};
  options_.temporary = temporary_.path();
  SignalQueue signals;
  EXPECT_THAT([&] { launch_ranks(options_, signals); },
              ThrowsMessage<RunError>(AllOf(HasSubstr("absent cannot be started"), HasSubstr("No such file"))));
  EXPECT_THAT(left_in_temporary(), IsEmpty());
}

// The ranks' notes would not fit, and they would wait for room.
TEST_F(LaunchRanks, AreNotStartedWhereTheyHaveNoRoomToMeet) {
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{4096, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THAT(
      [&] {
        launch({fmt::format("note:{}", file("notes")), "exit:0"}, 3);
      },
      ThrowsMessage<NoRoom>(AllOf(StartsWith(temporary_.path().string()), HasSubstr("set TMPDIR to another"))));
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, SIG_DFL);
  EXPECT_FALSE(std::filesystem::exists(file("notes")));
  EXPECT_THAT(left_in_temporary(), IsEmpty());
}

// kill -9 of the launcher kills all ranks. Orphans become children of this process.
TEST_F(LaunchRanks, NobodyOutlivesTheLauncher) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  const std::string pipe = file("notes");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int notes = ::open(pipe.c_str(), O_RDWR);
  const pid_t launcher = ::fork();
  if (launcher == 0) {
    const std::string words = fmt::format("note:{},ignore", pipe);
    ::_exit(launch({words, words, words}));
  }
  for (int lines = 0; lines < 3;) {
    char byte = 0;
    ASSERT_EQ(::read(notes, &byte, 1), 1);
    if (byte == '\n') ++lines;
  }
  ::kill(launcher, SIGKILL);
  int ended = 0, status = 0;
  while (::waitpid(-1, &status, 0) > 0) {
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ++ended;
  }
  EXPECT_EQ(ended, 4);
  ::close(notes);
  // What it left goes with the next launch, and nothing that only looks like it.
  EXPECT_THAT(left_in_temporary(), SizeIs(2));
  std::filesystem::create_directory(temporary_.path() / "gyre-launch-abcdef");
  std::ofstream(temporary_.path() / "gyre-launch-ghijkl") << "a file";
  EXPECT_EQ(launch({"exit:0"}), 0);
  EXPECT_THAT(left_in_temporary(),
              UnorderedElementsAre(EndsWith("gyre-launch-abcdef"), EndsWith("gyre-launch-ghijkl")));
}

// Neither the directory of a launcher that lives nor the logs that somebody was told to look at are taken for left
// ones.
TEST_F(LaunchRanks, WhatIsStillWantedIsNotRemoved) {
  EXPECT_EQ(launch({"gather,watch,exit:0", "gather,say:out of luck,exit:7"}), 7);
  const auto kept = left_in_temporary();
  ASSERT_THAT(kept, SizeIs(1));
  const std::string pipe = file("notes");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int notes = ::open(pipe.c_str(), O_RDWR);
  const pid_t launcher = ::fork();
  if (launcher == 0) ::_exit(launch({fmt::format("note:{},ignore", pipe)}));
  for (char byte = 0; byte != '\n';) ASSERT_EQ(::read(notes, &byte, 1), 1);
  const auto before = left_in_temporary();
  EXPECT_THAT(before, SizeIs(3));
  EXPECT_EQ(launch({"exit:0"}), 0);
  EXPECT_THAT(left_in_temporary(), UnorderedElementsAreArray(before));
  ::kill(launcher, SIGKILL);
  while (::waitpid(-1, nullptr, 0) > 0) {  // its rank, too, where it becomes a child of this process
  }
  ::close(notes);
}

}  // namespace
}  // namespace gyre
