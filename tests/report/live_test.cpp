// Tests live.json: what is written reads back, damage is reported, and an ended process is noticed.
#include "gyre/report/live.h"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>

#include "gyre/core/error.h"
#include "gyre/core/host_name.h"
#include "gyre/core/process_space.h"

namespace gyre {
namespace {

using ::testing::HasSubstr;

LiveRun training() {
  LiveRun run;
  run.state = "training";
  run.written = 1000;
  run.period = 1;
  run.host = host_name();
  run.pid = ::getpid();
  run.pid_space = process_space();
  run.pid_started = process_started(run.pid).value_or(-1);
  run.step = 3;
  run.updates = 10;
  run.loss = 2.5;
  run.delays = {2.0, std::nullopt};
  run.workers.resize(2);
  run.workers[0].action = "0F3";
  run.workers[0].busy = 0.25;
  run.workers[0].waits = {{1, 0.5}, {-1, 0.25}};
  run.workers[1].worker = run.workers[1].process = 1;
  run.workers[1].action = "1F2";
  run.workers[1].needs = "the activation of 0F2 from worker 0";
  run.processes = {{1, 2, 3, 4}, {}};
  return run;
}

TEST(Live, WhatIsWrittenReadsBack) {
  const LiveRun run = training();
  EXPECT_EQ(parse_live_run(to_json(run), "live.json"), run);
  LiveRun without = run;
  without.loss.reset();
  LiveRun not_finite = run;
  not_finite.loss = std::nan("");
  EXPECT_EQ(parse_live_run(to_json(not_finite), "live.json"), without);
}

TEST(Live, WhatIsDamagedIsTold) {
  const std::string sound = to_json(training());
  const auto complaint = [](const std::string& text) -> std::string {
    try {
      parse_live_run(text, "run/live.json");
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = sound;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return complaint(text.replace(at, from.size(), to));
  };
  EXPECT_EQ(complaint(sound), "");
  EXPECT_THAT(complaint(sound.substr(0, sound.size() / 2)), HasSubstr("run/live.json: is damaged"));
  EXPECT_THAT(complaint(""), HasSubstr("run/live.json: is damaged"));
  EXPECT_THAT(changed("\"training\"", "\"dreaming\""), HasSubstr("'state' is 'dreaming'"));
  EXPECT_THAT(changed("\"step\":3", "\"step\":\"x\""), HasSubstr("'step'"));
  EXPECT_THAT(changed("\"action\":\"1F2\"", "\"action\":7"), HasSubstr("workers[1]"));
  EXPECT_THAT(changed("1000.0", "1e300"), HasSubstr("'written'"));
}

TEST(Live, ARunIsGoneWhenItsProcessIs) {
  LiveRun run = training();
  EXPECT_FALSE(is_gone(run, 1e9));  // it is alive, however long it has written nothing
  EXPECT_TRUE(is_in_sight(run));
  run.pid_started += 1;  // a later process with the same number
  EXPECT_TRUE(is_gone(run, 1000));
  run.state = "finished";
  EXPECT_FALSE(is_gone(run, 1000));

  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(process_started(child), std::nullopt);  // a zombie: nobody has waited for it yet
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(process_started(child), std::nullopt);

  run = training();
  run.host = "another-host";
  run.pid = 1 << 30;
  EXPECT_FALSE(is_in_sight(run));
  EXPECT_FALSE(is_gone(run, 1030));
  EXPECT_TRUE(is_gone(run, 1100));
  run.period = 100;
  EXPECT_FALSE(is_gone(run, 1900));

  run = training();  // in a container that has this host's name, say, or before this machine was started again
  run.pid = 1 << 30;
  run.pid_space = "another";
  EXPECT_FALSE(is_in_sight(run));
  EXPECT_FALSE(is_gone(run, 1030));
  EXPECT_TRUE(is_gone(run, 1100));
}

// Login nodes often mount /proc so that users see their own processes only.
TEST(Live, ARunOfAnotherUserIsNotGoneWhereProcHidesIt) {
  constexpr int kCannot = 77;
  const LiveRun run = training();
  const pid_t other = ::fork();
  if (other == 0) {
    const bool is_hidden = ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, "") == 0 &&
                           ::mount("proc", "/proc", "proc", 0, "hidepid=2") == 0 && ::setgroups(0, nullptr) == 0 &&
                           ::setgid(65534) == 0 && ::setuid(65534) == 0 && !process_started(run.pid);
    if (!is_hidden) ::_exit(kCannot);
    ::_exit(!is_in_sight(run) && !is_gone(run, 1030) && is_gone(run, 1100) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(other, &status, 0), other);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kCannot) GTEST_SKIP() << "only root can hide processes";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace gyre
