// Tests what gyre top reads from a run's directory while the run writes there.
#include "gyre/report/top/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

struct TopFiguresTest : ::testing::Test {
  std::string complaint(const fs::path& run) const {
    try {
      TopReader(run).read(0);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  void add(const std::string& text) const { std::ofstream(root / "metrics.jsonl", std::ios::app) << text; }
  static std::string step(int number, double loss) {
    return "{\"event\":\"step\",\"step\":" + std::to_string(number) + ",\"loss\":" + std::to_string(loss) +
           ",\"lr\":0.1,\"grad_norm\":null,\"tokens\":64}\n";
  }
  testing_support::TemporaryDirectory root;
};

TEST_F(TopFiguresTest, WhatIsNoRunIsRefused) {
  EXPECT_THAT(complaint(root / "nowhere"), HasSubstr("nowhere: no run is here"));
  EXPECT_THAT(complaint(root.path()), HasSubstr("no config.toml"));
  std::ofstream(root / "results.json") << "{}";
  EXPECT_THAT(complaint(root.path()), HasSubstr("is a study"));
  fs::remove(root / "results.json");  // which a study under way does not have yet
  const fs::path run = root / "runs" / "1-adamw" / "lr0.001-seed1";
  fs::create_directories(run);
  EXPECT_THAT(complaint(root.path()), HasSubstr("no config.toml"));
  std::ofstream(run / "config.toml") << "";
  EXPECT_THAT(complaint(root.path()), HasSubstr("is a study; give the directory of one of its runs"));
}

TEST_F(TopFiguresTest, DamagedFilesAreTold) {
  std::ofstream(root / "config.toml") << "";
  std::ofstream(root / "live.json") << "{\"state\":";
  EXPECT_THAT(complaint(root.path()), HasSubstr("live.json: is damaged"));
  fs::remove(root / "live.json");
  add("nonsense\n");
  EXPECT_THAT(complaint(root.path()), HasSubstr("metrics.jsonl:1"));
}

// As where a disk does not answer for a moment, or a run is moved while somebody watches it.
TEST_F(TopFiguresTest, WhoWatchesIsToldWhatCannotBeReadAndSeesTheRestFromBefore) {
  const fs::path run = root / "run", moved = root / "moved";
  fs::create_directory(run);
  std::ofstream(run / "config.toml") << "";
  std::ofstream(run / "metrics.jsonl") << step(1, 4);
  TopReader reader(run);
  TopFigures figures = reader.read(0);
  fs::rename(run, moved);
  reader.update(figures, 5);
  EXPECT_THAT(figures.problem, HasSubstr("the run is not there any more"));
  EXPECT_EQ(figures.now, 5);
  EXPECT_EQ(figures.metrics.last.value().step, 1);
  fs::rename(moved, run);
  std::ofstream(run / "metrics.jsonl", std::ios::app) << "nonsense\n";
  reader.update(figures, 6);
  EXPECT_THAT(figures.problem, HasSubstr("metrics.jsonl:2"));
  std::ofstream(run / "metrics.jsonl") << step(1, 4) << step(2, 3);
  reader.update(figures, 7);
  EXPECT_EQ(figures.problem, "");
  EXPECT_EQ(figures.metrics.last.value().step, 2);
}

TEST_F(TopFiguresTest, MetricsAreReadAsTheyGrowAndAnewWhenTheyAreReplaced) {
  std::ofstream(root / "config.toml") << "";
  TopReader reader(root.path());
  EXPECT_FALSE(reader.read(0).begun);
  add(step(1, 4) + "{\"event\":\"step\",\"st");
  EXPECT_EQ(reader.read(0).metrics.losses.size(), 1u);
  add("ep\":2,\"loss\":null}\n" + step(3, 2) + "{\"event\":\"end\",\"status\":\"finished\",\"step\":3}\n");
  TopFigures figures = reader.read(0);
  EXPECT_TRUE(figures.begun);
  EXPECT_FALSE(figures.running());
  ASSERT_EQ(figures.metrics.losses.size(), 2u);
  EXPECT_EQ(figures.metrics.losses[1], std::pair(int64_t{3}, 2.0));
  EXPECT_EQ(figures.metrics.end->status, "finished");
  // As a resumed session does.
  write_file_atomic(root / "metrics.jsonl",
                    step(1, 4) + "{\"event\":\"resume\",\"step\":1}\n" + step(2, 3) + std::string(4096, ' ') + "\n");
  EXPECT_THROW(reader.read(0), InputError);  // not a line of metrics
  write_file_atomic(root / "metrics.jsonl", step(1, 4) + "{\"event\":\"resume\",\"step\":1}\n" + step(2, 3) +
                                                "{\"event\":\"eval\",\"step\":2,\"val_loss\":3.5}\n");
  figures = reader.read(0);
  ASSERT_EQ(figures.metrics.losses.size(), 2u);
  EXPECT_EQ(figures.metrics.losses[1].first, 2);
  EXPECT_FALSE(figures.metrics.end);
  EXPECT_EQ(figures.metrics.val_loss, 3.5);

  write_file_atomic(root / "metrics.jsonl",
                    "{\"event\":\"step\",\"step\":1,\"loss\":4,\"tokens\":64,\"seconds\":9}\n"
                    "{\"event\":\"segment\",\"step\":1,\"seconds\":8}\n{\"event\":\"resume\",\"step\":1}\n");
  figures = reader.read(0);
  EXPECT_EQ(figures.metrics.totals.earlier_seconds, 9);
  EXPECT_EQ(figures.metrics.totals.tokens_per_second, 8);
}

// Each half second of a run of millions of updates costs as much as of a short one.
TEST_F(TopFiguresTest, OfALongRunTheLossesAreThinned) {
  std::ofstream(root / "config.toml") << "";
  TopReader reader(root.path());
  std::string text;
  for (int number = 1; number <= 20'000; ++number) text += step(number, 4);
  add(text);
  EXPECT_LE(reader.read(0).metrics.losses.size(), 2 * LossCurve::kMostStretches + 3);
  write_file_atomic(root / "metrics.jsonl", step(1, 4));
  EXPECT_EQ(reader.read(0).metrics.losses.size(), 1u);
}

}  // namespace
}  // namespace gyre
