// What signals do once there are no Interrupts any more.
#include "interrupts.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace gyre::app {
namespace {

TEST(InterruptsDeathTest, AHangUpEndsTheProcessAsBeforeThem) {
  const auto end = [] {
    heed_hangup();
    { const Interrupts interrupts; }
    raise(SIGHUP);
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(143), "");
}

// A shell starts background jobs with SIGINT ignored.
TEST(Interrupts, AnIgnoredSignalIsIgnoredAgain) {
  const auto before = signal(SIGINT, SIG_IGN);
  { const Interrupts interrupts; }
  EXPECT_EQ(signal(SIGINT, before), SIG_IGN);
}

}  // namespace
}  // namespace gyre::app
