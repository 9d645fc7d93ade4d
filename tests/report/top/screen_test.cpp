// Tests the screen of gyre top: what it shows of the figures, for any size of the screen.
#include "gyre/report/top/screen.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <numeric>

#include "gyre/core/utf8.h"
#include "gyre/report/columns.h"
#include "gyre/report/top/screen_text.h"

namespace gyre {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TopFigures training(int workers, int processes = 1) {
  TopFigures figures;
  figures.name = "runs/slow-stage";
  figures.now = 1e6 + 1;
  figures.begun = true;
  LiveRun run;
  run.state = "training";
  run.written = 1e6;
  run.period = 1;
  run.step = 120;
  run.updates = 2000;
  run.tokens = 1'966'080;
  run.loss = 4.0123;
  run.lr = 0.001;
  run.grad_norm = 0.8125;
  run.tokens_per_second = 16000;
  run.seconds_left = 1805;
  run.seconds = 122;
  for (int worker = 0; worker < workers; ++worker) {
    LiveWorker row;
    row.worker = worker;
    row.process = worker * processes / workers;
    row.action = fmt::format("{}F{}", worker, 480 + worker);
    row.busy = worker == 2 ? 1.0 : 0.25;
    if (worker != 2) {
      row.needs = "the activation";
      row.waits = {{2, 0.70}, {-1, 0.05}};
    }
    row.activations = worker;
    row.gradients = 1;
    run.workers.push_back(row);
    run.delays.push_back(workers - 1 - worker);
  }
  for (int process = 0; process < processes; ++process) {
    run.processes.push_back({300 << 20, 310 << 20, 100 << 20, 120 << 20});
  }
  figures.live = run;
  for (int step = 1; step <= 120; ++step) figures.metrics.losses.emplace_back(step, 4 + 1.0 / step);
  return figures;
}

int columns_of(const ScreenLine& line) {
  return std::accumulate(line.begin(), line.end(), 0,
                         [](int sum, const Span& span) { return sum + columns(span.text); });
}

TEST(Screen, SaysThatTheRunCannotBeReadNow) {
  TopFigures figures = training(4);
  figures.problem = "runs/slow-stage: the run is not there any more";
  EXPECT_THAT(plain_text(draw_screen(figures, {.width = 80, .height = 24})),
              AllOf(HasSubstr("cannot be read now"), HasSubstr("the run is not there any more\n"),
                    HasSubstr("loss 4.0123"), Not(HasSubstr(" training"))));
}

TEST(Screen, HasWhatTheRunDoes) {
  const std::string text = plain_text(draw_screen(training(4), {.width = 80, .height = 24}));
  EXPECT_THAT(text, AllOf(HasSubstr("runs/slow-stage"), HasSubstr("training"), HasSubstr("update 120 of 2000"),
                          HasSubstr("16.0k tokens/s"), HasSubstr("ETA 30:05"), HasSubstr("2:02 so far")));
  EXPECT_THAT(text, AllOf(HasSubstr("loss 4.0123"), HasSubstr("rate 0.001"), HasSubstr("gradient norm 0.812"),
                          HasSubstr("2.0M tokens")));
  EXPECT_THAT(text, HasSubstr("0:3.00  1:2.00  2:1.00  3:0.00"));
  EXPECT_THAT(text,
              AllOf(HasSubstr("300.0 MiB, at most 310.0 MiB"), HasSubstr("tensors 100.0 MiB, at most 120.0 MiB")));
  EXPECT_THAT(text, AllOf(HasSubstr("100%  2F482"), HasSubstr("25%  (0F480)"), HasSubstr("worker 2 70%")));
  EXPECT_THAT(text, AllOf(HasSubstr("5.000 "), HasSubstr("4.008 "), HasSubstr("update 1 "), HasSubstr("q quits")));
  EXPECT_THAT(text, Not(HasSubstr("process")));  // there is only one
}

TEST(Screen, FitsWhateverRoomThereIs) {
  for (const int workers : {0, 1, 4, 64}) {
    for (const int processes : {1, 2, 8}) {
      const TopFigures figures = training(workers, processes);
      for (const int width : {20, 40, 41, 60, 80, 132, 240}) {
        for (const int height : {4, 8, 16, 24, 60, 100}) {
          const Screen screen = draw_screen(figures, {.width = width, .height = height});
          ASSERT_EQ(static_cast<int>(screen.lines.size()), height) << width;
          for (const ScreenLine& line : screen.lines) {
            ASSERT_LE(columns_of(line), width) << height << ": " << plain_text(screen);
            for (const Span& span : line) ASSERT_TRUE(is_utf8(span.text));
          }
        }
      }
    }
  }
}

// A list that does not fit ends with an ellipsis, and not within a word.
TEST(Screen, CutsNoWord) {
  TopFigures figures = training(4);
  figures.live->workers[0].waits = {{1, 0.31}, {2, 0.22}, {3, 0.13}, {-1, 0.04}};
  constexpr int kMinWidth = 40;  // lines are whole in terminals from this width on
  for (int width = kMinWidth; width <= 160; ++width) {
    const std::string text = plain_text(draw_screen(figures, {.width = width, .height = 24}));
    const size_t row = text.find("(0F480)");
    ASSERT_NE(row, std::string::npos) << text;
    const std::string rest = text.substr(row, text.find('\n', row) - row);
    const bool whole = rest.ends_with("%") || rest.ends_with("…") || rest.ends_with("B");
    EXPECT_TRUE(whole) << width << ": " << rest;
  }
}

TEST(Screen, ScrollsWhereThereAreMoreWorkersThanLines) {
  const TopFigures figures = training(64);
  const Screen top = draw_screen(figures, {.width = 80, .height = 24});
  EXPECT_EQ(top.workers, 64);
  EXPECT_GE(top.shown, 5);
  EXPECT_LT(top.shown, 24);
  EXPECT_THAT(plain_text(top), HasSubstr(fmt::format("workers 1 to {} of 64", top.shown)));
  const Screen end = draw_screen(figures, {.width = 80, .height = 24, .first = 1000});
  EXPECT_EQ(end.first, 64 - end.shown);
  EXPECT_THAT(plain_text(end), AllOf(HasSubstr("(63F543)"), HasSubstr("to 64 of 64")));
  const Screen all = draw_screen(figures, {.width = 80, .height = 0, .keys = false});
  EXPECT_EQ(all.shown, 64);
}

TEST(Screen, SaysWhatIsNotRunning) {
  TopFigures figures;
  figures.name = "run";
  EXPECT_THAT(plain_text(draw_screen(figures, {})), HasSubstr("has not begun"));

  figures = training(4);
  figures.gone = true;
  figures.now = 1e6 + 65;
  EXPECT_THAT(plain_text(draw_screen(figures, {})), HasSubstr("not running: last seen training 1:05 ago (1970-01-1"));
  EXPECT_THAT(plain_text(draw_screen(figures, {})), Not(HasSubstr("ETA")));

  figures.in_sight = false;  // on another host it may also be saving
  EXPECT_THAT(plain_text(draw_screen(figures, {})),
              AllOf(HasSubstr("last seen training 1:05 ago (1970-01-1"), HasSubstr("; cannot be seen from here"),
                    Not(HasSubstr("not running")), Not(HasSubstr("ETA"))));

  figures.gone = false;
  EXPECT_THAT(plain_text(draw_screen(figures, {})), HasSubstr("training, nothing written for 1:05"));

  figures.live->state = "diverged";
  EXPECT_THAT(plain_text(draw_screen(figures, {})), HasSubstr("diverged 1:05 ago (1970-01-1"));

  figures.live.reset();
  figures.metrics.last = MetricsStep{.step = 7, .loss = 3.25, .tokens = 700};
  EXPECT_THAT(plain_text(draw_screen(figures, {})), AllOf(HasSubstr("no live.json"), HasSubstr("loss 3.2500")));
}

TEST(Screen, ARunThatHasEndedHasTheTokensPerSecondOfAllItsSessions) {
  TopFigures figures = training(4);
  figures.metrics.last.emplace().tokens_per_second = 17000;
  figures.metrics.end.emplace().tokens_per_second = 4000;  // of its last session
  figures.metrics.totals.tokens_per_second = 12000;
  EXPECT_THAT(plain_text(draw_screen(figures, {})), HasSubstr("16.0k tokens/s"));  // another session trains
  figures.live->state = "finished";
  EXPECT_THAT(plain_text(draw_screen(figures, {})), HasSubstr("12.0k tokens/s"));
  figures.live.reset();
  EXPECT_THAT(plain_text(draw_screen(figures, {})), HasSubstr("12.0k tokens/s"));
  figures.metrics.end.reset();  // it was killed
  EXPECT_THAT(plain_text(draw_screen(figures, {})), HasSubstr("17.0k tokens/s"));
}

TEST(Screen, TheTimeIsThatOfAllSessions) {
  TopFigures figures = training(4);
  figures.metrics.totals.earlier_seconds = 3600;
  EXPECT_THAT(plain_text(draw_screen(figures, {})), HasSubstr("1:02:02 so far"));
}

TEST(Screen, AHugeLossTakesNoMoreRoomThanAnother) {
  TopFigures figures = training(4);
  figures.live->loss = 3.9e19;
  figures.live->val_loss = 999999;
  figures.metrics.losses.back().second = 3e38;
  const std::string text = plain_text(draw_screen(figures, {.width = 80, .height = 24}));
  EXPECT_THAT(text, AllOf(HasSubstr("loss 3.9e+19  validation 999999.0000"), HasSubstr("3e+38 "), HasSubstr("4.008 ")));
}

TEST(Screen, NarrowMemoryIsCut) {
  EXPECT_THAT(plain_text(draw_screen(training(4), {.width = 30, .height = 24})), HasSubstr("memory  300.0 MiB, at"));
}

TEST(Screen, ACurveGoesFromItsHighestToItsLowest) {
  const auto falling = braille_curve({3, 2, 1, 0}, 2, 1);
  ASSERT_EQ(falling.size(), 1u);
  EXPECT_EQ(falling[0], "⠙⢦");
  EXPECT_EQ(braille_curve({1, 1}, 1, 1)[0], "⠤");
  for (const size_t count : {1, 2, 7, 1000}) {
    const std::vector<double> values(count, 5);
    for (const std::string& line : braille_curve(values, 10, 3)) EXPECT_EQ(columns(line), 10);
  }
}

}  // namespace
}  // namespace gyre
