// Which signals ask for an orderly end, and which for one at once.
#include "gyre/core/stop_signals.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace gyre {
namespace {

using Meaning = StopSignals::Meaning;
using std::chrono::milliseconds;

constexpr StopSignals::Clock::time_point kBegin{};

TEST(StopSignals, ASecondOneASecondLaterEndsAtOnce) {
  for (const int signal : {SIGINT, SIGTERM}) {
    StopSignals signals;
    EXPECT_EQ(signals.first(), 0);
    EXPECT_EQ(signals.take(signal, kBegin), Meaning::Stop);
    EXPECT_EQ(signals.take(SIGTERM, kBegin + milliseconds(1000)), Meaning::EndAtOnce);
    EXPECT_EQ(signals.first(), signal);
  }
}

// `timeout` sends SIGTERM to its child, and then to the group.
TEST(StopSignals, OneThatComesSoonAfterTheFirstIsTheSameRequest) {
  StopSignals signals;
  EXPECT_EQ(signals.take(SIGTERM, kBegin), Meaning::Stop);
  EXPECT_EQ(signals.take(SIGTERM, kBegin + milliseconds(1)), Meaning::Same);
  EXPECT_EQ(signals.take(SIGINT, kBegin + milliseconds(999)), Meaning::Same);
  EXPECT_EQ(signals.take(SIGINT, kBegin + milliseconds(1001)), Meaning::EndAtOnce);  // counted from the first
}

// A terminal that is closed: the shell sends one when it ends, and the kernel another.
TEST(StopSignals, AHangUpIsNeverTheSecondOne) {
  for (const int signal : {SIGINT, SIGHUP}) {
    StopSignals signals;
    EXPECT_EQ(signals.take(signal, kBegin), Meaning::Stop);
    EXPECT_EQ(signals.take(SIGHUP, kBegin + std::chrono::hours(1)), Meaning::Same);
    EXPECT_EQ(signals.take(SIGTERM, kBegin + std::chrono::hours(2)), Meaning::EndAtOnce);
  }
}

}  // namespace
}  // namespace gyre
