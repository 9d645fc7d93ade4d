// A child process has its environment, its signals and its end from this one; and the last line of its log.
#include "gyre/launch/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "support/limited_child.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ChildProcess, HasTheEnvironmentOfThisOneAndItsOwn) {
  const testing_support::TemporaryDirectory directory;
  const OutputFile out(directory / "out", O_WRONLY | O_CREAT);
  ::setenv("GYRE_TEST_A", "of the parent", 1);
  ::setenv("GYRE_TEST_B", "of the parent", 1);
  ChildProcess child({{"/usr/bin/env"}, {{"GYRE_TEST_B", "its own"}}, out.descriptor()});
  EXPECT_EQ(child.reap().code, 0);
  const std::string text = read_file(directory / "out");
  EXPECT_THAT(text, AllOf(HasSubstr("GYRE_TEST_A=of the parent\n"), HasSubstr("GYRE_TEST_B=its own\n"),
                          Not(HasSubstr("GYRE_TEST_B=of the parent"))));
}

TEST(ChildProcess, NamesTheLimitThatKeepsItFromStarting) {
  const std::optional<bool> is_named = testing_support::where_nothing_starts([] {
    try {
      const ChildProcess child({{"/bin/true"}, {}});
    } catch (const RunError& error) {
      const std::string text = error.what();
      return text.starts_with("/bin/true cannot be started: ") && text.find("ulimit -u") != std::string::npos;
    }
    return false;
  });
  if (!is_named) GTEST_SKIP() << "this root cannot become another user";
  EXPECT_TRUE(*is_named);
}

TEST(ChildProcess, ReadsNothing) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const int before = ::dup(STDIN_FILENO);
  ::dup2(pipe[0], STDIN_FILENO);  // a standard input that never ends
  ChildProcess child({{"/bin/cat"}, {}});
  EXPECT_EQ(child.reap().code, 0);
  ::dup2(before, STDIN_FILENO);
}

// As where a service ignores SIGCHLD, so that no zombies stay, and then starts gyre.
TEST(ChildProcess, ItsEndIsKnownWhereSigchldIsIgnored) {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  ChildProcess fails({{"/bin/false"}, {}});
  EXPECT_EQ(fails.reap().code, 1);
  ::signal(SIGCHLD, before);
}

// It is this process that passes it on.
TEST(ChildProcess, ACtrlCOfTheTerminalDoesNotReachIt) {
  const pid_t foreground = ::fork();
  if (foreground == 0) {
    ::setpgid(0, 0);
    ::signal(SIGINT, SIG_IGN);
    ChildProcess child({{"/bin/sleep", "1000000"}, {}});
    ::kill(0, SIGINT);  // as a terminal does: to the whole process group
    child.signal(SIGTERM);
    ::_exit(child.reap().signal);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(foreground, &status, 0), foreground);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), SIGTERM);
}

TEST(ChildProcess, ItsEndIsDescribed) {
  EXPECT_EQ(describe(ChildProcess({{"/bin/sh", "-c", "exit 3"}, {}}).reap()), "failed with exit code 3");
  EXPECT_EQ(describe(ChildProcess({{"/bin/sh", "-c", "kill -KILL $$"}, {}}).reap()), "was killed by SIGKILL");
  EXPECT_EQ(describe({0, 35}), "was killed by signal 35");
}

// As where a script has started this process in the background.
TEST(ChildProcess, DoesNotIgnoreWhatIsPassedOn) {
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) {
    const auto before = ::signal(number, SIG_IGN);
    ChildProcess child({{"/bin/sh", "-c", fmt::format("kill -{} $$; exit 3", number)}, {}});
    const ChildEnd end = child.reap();
    ::signal(number, before);
    if (number == SIGUSR1) {
      EXPECT_EQ(end.code, 3);  // the child blocks it until it handles it
    } else {
      EXPECT_EQ(end.signal, number);
    }
  }
}

TEST(ChildProcess, IsKilledWhenNobodyWantsItAnyMore) {
  { const ChildProcess child({{"/bin/sleep", "1000000"}, {}}); }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // no child is left
}

// Only the end of a log is read.
TEST(LastLine, OfALogOfAnySize) {
  const testing_support::TemporaryDirectory directory;
  const std::string log = directory.path() / "log";
  std::ofstream(log) << "first\n" << std::string(100'000, 'x') << "\nlast\n\n";
  EXPECT_EQ(last_line(log, 0), "last");
  EXPECT_EQ(last_line(log, 100'008), "ast");
  EXPECT_EQ(last_line(log, 1'000'000), "");
}

}  // namespace
}  // namespace gyre
