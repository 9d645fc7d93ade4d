// The report of a run in progress: read again when its files have changed, not too often, and once for all clients.
#include "gyre/serve/live_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "gyre/config/config.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string step(int number) {
  return R"({"event":"step","step":)" + std::to_string(number) +
         R"(,"loss":2.25,"lr":0.1,"grad_norm":1,"tokens":9,"tokens_per_second":5,"seconds":1})" + "\n";
}

class LiveReportTest : public ::testing::Test {
 protected:
  LiveReportTest() {
    fs::create_directories(run_);
    write_file_atomic(run_ / "config.toml", to_toml(parse_config("[data]\ntokens = \"tokens\"\n", "run", {})));
  }
  void append(const std::string& text) const { std::ofstream(run_ / "metrics.jsonl", std::ios::app) << text; }
  LiveReport report() {
    return LiveReport({run_}, [this] { return time_; });
  }
  void pass(std::chrono::seconds seconds) { time_ += seconds; }

  testing_support::TemporaryDirectory directory_;
  fs::path run_ = directory_ / "run";
  std::chrono::steady_clock::time_point time_{};
};

TEST_F(LiveReportTest, FollowsTheMetrics) {
  LiveReport live = report();
  EXPECT_EQ(live.summary(), "1 run");
  ASSERT_EQ(live.notes().size(), 1u);
  EXPECT_THAT(live.notes()[0], HasSubstr("no update is recorded yet"));
  const auto empty = live.now();
  EXPECT_EQ(nlohmann::json::parse(empty->data)["runs"][0]["steps"], 0);
  EXPECT_EQ(empty->timelines, "[]");
  append(step(1) + step(2) + "{\"event\":\"st");
  EXPECT_EQ(live.now(), empty) << "a second has not passed";
  pass(std::chrono::seconds(2));
  const auto two = live.now();
  EXPECT_EQ(nlohmann::json::parse(two->data)["runs"][0]["curves"][0]["step"], nlohmann::json({1, 2}));
  EXPECT_NE(two->data_tag, empty->data_tag);
  EXPECT_EQ(two->timelines_tag, empty->timelines_tag);
  pass(std::chrono::seconds(2));
  EXPECT_EQ(live.now(), two) << "nothing has changed";
}

TEST_F(LiveReportTest, KeepsWhatItSaidAndSaysWhatIsWrong) {
  append(step(1));
  LiveReport live = report();
  live.now();
  append("no line\n");
  pass(std::chrono::seconds(2));
  const auto data = nlohmann::json::parse(live.now()->data);
  EXPECT_THAT(data["problem"].get<std::string>(), HasSubstr("metrics.jsonl:2: is not a line of metrics"));
  EXPECT_EQ(data["runs"][0]["steps"], 1);
  fs::remove_all(run_);
  pass(std::chrono::seconds(2));
  EXPECT_THAT(nlohmann::json::parse(live.now()->data)["problem"].get<std::string>(), HasSubstr("is not there"));
  EXPECT_THROW(report(), InputError);
}

TEST_F(LiveReportTest, WhatTakesLongIsMadeSeldom) {
  append(step(1));
  // Every reading of the clock advances it by three seconds, so reading takes three.
  LiveReport live({run_}, [this] { return time_ += std::chrono::seconds(3); });
  const auto first = live.now();
  append(step(2));
  for (int i = 0; i < 15; ++i) EXPECT_EQ(live.now(), first) << "rests twenty times as long";
  pass(std::chrono::seconds(30));
  EXPECT_NE(live.now(), first);
}

TEST_F(LiveReportTest, ManyWhoAskGetOneReport) {
  append(step(1));
  LiveReport live({run_});
  std::vector<std::shared_ptr<const LiveTexts>> got(16);
  {
    std::vector<std::jthread> threads;
    for (auto& texts : got) threads.emplace_back([&] { texts = live.now(); });
  }
  for (const auto& texts : got) EXPECT_EQ(texts, got[0]);
}

}  // namespace
}  // namespace gyre
