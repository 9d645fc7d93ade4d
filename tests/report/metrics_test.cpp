// metrics.jsonl: numbers that come back to the bit, and what a resumed run keeps.
#include "gyre/report/metrics.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "gyre/core/files.h"
#include "gyre/report/progress.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

std::vector<nlohmann::ordered_json> lines_of(const fs::path& path) {
  std::vector<nlohmann::ordered_json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::ordered_json::parse(line));
  return lines;
}

TEST(Metrics, NumbersComeBackToTheBit) {
  const fs::path path = fs::path(::testing::TempDir()) / ("gyre-metrics-" + std::to_string(::getpid()));
  fs::remove(path);
  {
    MetricsWriter writer(path);
    MetricsStep step;
    step.step = 3;
    step.loss = static_cast<float>(2.7182818);
    step.lr = 0.1 / 3;
    step.grad_norm = std::numeric_limits<double>::infinity();
    writer.step(step);
    writer.eval(3, 1.0 / 3);
    writer.delay(2, {{0, 1}, {3, 97}});
    writer.end({});
  }
  const auto lines = lines_of(path);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0]["loss"].get<double>(), double{static_cast<float>(2.7182818)});
  EXPECT_EQ(lines[0]["lr"].get<double>(), 0.1 / 3);
  EXPECT_TRUE(lines[0]["grad_norm"].is_null());
  EXPECT_EQ(lines[1].dump(), R"({"event":"eval","step":3,"val_loss":0.3333333333333333})");
  EXPECT_EQ(lines[2].dump(), R"({"event":"delay","stage":2,"histogram":{"0":1,"3":97}})");
  std::vector<std::string> keys;
  for (const auto& [key, value] : lines[0].items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"event", "step", "loss", "lr", "grad_norm", "tokens", "tokens_per_second",
                                            "seconds"}));
  fs::remove(path);
}

TEST(Metrics, TruncationKeepsWhatTheCheckpointHolds) {
  const fs::path path = fs::path(::testing::TempDir()) / ("gyre-truncate-" + std::to_string(::getpid()));
  fs::remove(path);
  truncate_metrics_after(path, 5);  // nothing there: nothing done
  EXPECT_FALSE(fs::exists(path));
  {
    MetricsWriter writer(path);
    for (int64_t step = 1; step <= 8; ++step) {
      MetricsStep line;
      line.step = step;
      writer.step(line);
    }
    writer.eval(5, 1);
    writer.eval(8, 1);
    writer.drain(4, "interrupt");
    writer.delay(0, {{0, 1}});
    writer.end({});
  }
  std::ofstream(path, std::ios::app) << R"({"event":"step","st)";  // torn by a crash
  truncate_metrics_after(path, 5);
  const auto lines = lines_of(path);
  ASSERT_EQ(lines.size(), 7u);
  for (const auto& line : lines) EXPECT_LE(line["step"].get<int64_t>(), 5);
  fs::remove(path);
}

TEST(Progress, PlainLinesWhenNotATerminal) {
  const fs::path path = fs::path(::testing::TempDir()) / ("gyre-progress-" + std::to_string(::getpid()));
  std::FILE* file = std::fopen(path.c_str(), "w");
  Progress progress(file, false);
  progress.start(3, 0);
  for (int64_t step = 1; step <= 3; ++step) progress.step(step, 2.5, 100.0 * static_cast<double>(step));
  progress.message("done");
  progress.finish();
  std::fclose(file);
  const std::string text = read_file(path);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_NE(text.find("step 3/3  loss 2.5000"), std::string::npos);
  EXPECT_NE(text.find("done\n"), std::string::npos);
  fs::remove(path);
}

}  // namespace
}  // namespace gyre
