// Tests metrics.jsonl: numbers read back to the bit, and what a resumed run keeps.
#include "gyre/report/metrics.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/report/metrics_reader.h"
#include "gyre/report/progress.h"
#include "support/counted_writes.h"
#include "support/forwarding_files.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;
using ::testing::StartsWith;

// A disk that is full for one line: half of it is written, and then nothing.
class HalfWrites final : public ForwardingFiles {
 public:
  explicit HalfWrites(int64_t line) : line_(line) {}
  ssize_t write(int descriptor, const void* data, size_t bytes) override {
    const int64_t call = calls_++;
    if (call == line_) return ForwardingFiles::write(descriptor, data, bytes / 2);
    if (call != line_ + 1) return ForwardingFiles::write(descriptor, data, bytes);
    errno = ENOSPC;
    return -1;
  }

 private:
  int64_t line_, calls_ = 0;
};

std::vector<nlohmann::ordered_json> lines_of(const fs::path& path) {
  std::vector<nlohmann::ordered_json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::ordered_json::parse(line));
  return lines;
}

TEST(Progress, WhatCannotBeWrittenIsLost) {
  std::FILE* const full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  std::setvbuf(full, nullptr, _IONBF, 0);  // as stderr
  for (const bool is_terminal : {false, true}) {
    Progress progress(full, is_terminal);
    progress.start(2, 0);
    progress.message("a line");
    for (int64_t step = 1; step <= 2; ++step) progress.step(step, 1.0, 10.0);
    progress.finish();
  }
  std::fclose(full);
}

TEST(Metrics, NumbersComeBackToTheBit) {
  const testing_support::TemporaryDirectory directory;
  const fs::path path = directory / "metrics.jsonl";
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
  EXPECT_TRUE(lines[3]["tokens_per_second"].is_null()) << "nothing was measured";
  std::vector<std::string> keys;
  for (const auto& [key, value] : lines[0].items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"event", "step", "loss", "lr", "grad_norm", "tokens", "tokens_per_second",
                                            "seconds"}));
}

TEST(Metrics, AContinuedFileHasWhatTheCheckpointHolds) {
  const testing_support::TemporaryDirectory directory;
  const fs::path path = directory / "metrics.jsonl";
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
    writer.checkpoint(5, 0.5, 2);
    writer.delay(0, {{0, 1}});
    writer.end({});
  }
  std::ofstream(path, std::ios::app) << R"({"event":"step","st)";  // torn by a crash
  continue_metrics(path, 5, {{"optimizer.lr", {0.1, 0.2}}});
  const auto lines = lines_of(path);
  ASSERT_EQ(lines.size(), 9u);
  for (const auto& line : lines) EXPECT_LE(line["step"].get<int64_t>(), 5);
  EXPECT_EQ(lines[7]["event"], "checkpoint");
  EXPECT_EQ(lines[8].dump(), R"({"event":"resume","step":5,"changed":{"optimizer.lr":[0.1,0.2]}})");
  continue_metrics(path, 5, nlohmann::ordered_json::object());
  EXPECT_EQ(lines_of(path).size(), 10u) << "what was changed before stays";
  std::ofstream(path, std::ios::app) << "no line of metrics\n";
  const std::string text = read_file(path);
  EXPECT_THROW(continue_metrics(path, 3, {}), InputError);
  EXPECT_EQ(read_file(path), text) << "what cannot be read is left as it is";
}

TEST(Metrics, AContinuedFileOfAnySizeIsCopiedInPieces) {
  const testing_support::TemporaryDirectory directory;
  const fs::path path = directory / "metrics.jsonl";
  // Some 24 MB, with a line to drop at the beginning, in the middle or at the end.
  const std::string blank(1000, ' ');
  const auto lines = [&](int64_t first, int64_t last) {
    std::string text;
    for (int64_t step = first; step <= last; ++step) {
      text += fmt::format("{{\"event\":\"step\",\"step\":{}{}}}\n", step, blank);
    }
    return text;
  };
  constexpr int64_t kSteps = 24000;
  const std::string delay = "{\"event\":\"delay\",\"stage\":0,\"histogram\":{}}\n",
                    resume = fmt::format("{{\"event\":\"resume\",\"step\":{},\"changed\":{{}}}}\n", kSteps);
  for (const int64_t before : {int64_t{0}, kSteps / 2, kSteps}) {
    const std::string kept = lines(1, before), rest = lines(before + 1, kSteps);
    for (const bool is_known : {false, true}) {
      std::ofstream(path) << kept << delay << rest << "{\"event\":\"step\",\"step\":24001}\n{\"event\":\"st";
      const FirstLines found = read_record(path, kSteps).kept;
      EXPECT_EQ(found.bytes, kept.size());
      EXPECT_EQ(found.lines, before);
      CountedWrites files;
      continue_metrics(path, kSteps, nlohmann::ordered_json::object(), is_known ? found : FirstLines{}, files);
      EXPECT_TRUE(read_file(path) == kept + rest + resume) << before << is_known;
      EXPECT_LT(files.most, size_t{5} << 20);
    }
  }
}

TEST(Metrics, AFaultPastTheFirstPieceHasItsLineAndLeavesTheFile) {
  const testing_support::TemporaryDirectory directory;
  const fs::path path = directory / "metrics.jsonl";
  std::string text;
  for (int64_t step = 1; step <= 6000; ++step) {
    text += fmt::format("{{\"event\":\"step\",\"step\":{}{}}}\n", step, std::string(1000, ' '));
  }
  text += "no line of metrics\n";
  std::ofstream(path) << text;
  for (const FirstLines& kept : {FirstLines{}, FirstLines{text.find('\n') + 1, 1}}) {
    try {
      continue_metrics(path, 6000, nlohmann::ordered_json::object(), kept);
      ADD_FAILURE() << "it was read";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), StartsWith(path.string() + ":6001: is not a line of metrics"));
    }
    EXPECT_TRUE(read_file(path) == text);
    EXPECT_EQ(std::distance(fs::directory_iterator(directory.path()), {}), 1) << "nothing is left beside it";
  }
}

TEST(Metrics, HalfALineOfAFullDiskIsNotGluedToTheNext) {
  const testing_support::TemporaryDirectory directory;
  const fs::path path = directory / "metrics.jsonl";
  for (int64_t at = 0; at < 12; ++at) {
    fs::remove(path);
    int64_t written = 0;
    HalfWrites files(at);
    {
      MetricsWriter writer(path, files);
      for (int64_t step = 1; step <= 12; ++step) {
        try {
          writer.eval(step, 1.5);
          ++written;
        } catch (const RunError&) {
          EXPECT_EQ(step, at + 1);
        }
      }
    }
    EXPECT_EQ(written, 11);
    int64_t whole = 0;
    for_each_metrics_line(read_file(path), path.string(), "", [&](const MetricsLine&) { ++whole; });
    EXPECT_EQ(whole, 11) << at;
  }
}

// The text of a run: one line for each step, and `more` after them.
std::string steps(int64_t first, int64_t last, const std::string& more = "") {
  std::string text;
  for (int64_t step = first; step <= last; ++step) {
    text += R"({"event":"step","step":)" + std::to_string(step) + R"(,"loss":)" + std::to_string(step) +
            R"(.5,"tokens":)" + std::to_string(step * 10) + "}\n";
  }
  return text + more;
}

RunRecord record_of(const std::string& text, int64_t upto) {
  const testing_support::TemporaryDirectory directory;
  write_file_atomic(directory / "metrics.jsonl", text);
  return read_record(directory / "metrics.jsonl", upto);
}

// The reader's error message for a metrics.jsonl of `text`, from the file's name on, or "read".
std::string complaint(const std::string& text, int64_t upto) {
  try {
    record_of(text, upto);
  } catch (const InputError& error) {
    const std::string message = error.what();
    return message.substr(message.find("metrics.jsonl"));
  }
  return "read";
}

TEST(MetricsReader, SaysWhatARunMade) {
  const std::string text = steps(1, 4, R"({"event":"eval","step":4,"val_loss":2.5}
{"event":"checkpoint","step":4}
{"event":"resume","step":4,"changed":{}}
)") + steps(5, 7, R"({"event":"eval","step":7,"val_loss":null}
{"event":"end","status":"interrupted","step":7,"loss":null,"tokens":70}
{"event":"st)");
  const RunRecord all = record_of(text, 7);
  EXPECT_EQ(all.newest_step, 7);
  EXPECT_EQ(all.loss, 7.5);
  EXPECT_EQ(all.tokens, 70);
  EXPECT_EQ(all.val_loss, std::nullopt) << "it was not finite";
  EXPECT_EQ(all.evaluated, 7);
  EXPECT_EQ(all.last_checkpoint, 4);
  ASSERT_TRUE(all.end) << "what a kill tore at the end is no line";
  EXPECT_EQ(all.end->status, "interrupted");
  EXPECT_TRUE(std::isnan(all.end->loss));
  const RunRecord earlier = record_of(text, 4);
  EXPECT_EQ(earlier.newest_step, 7);
  EXPECT_EQ(earlier.loss, 4.5);
  EXPECT_EQ(earlier.val_loss, 2.5);
  EXPECT_FALSE(record_of(steps(1, 2), 2).last_checkpoint);
}

TEST(MetricsReader, NamesTheLineThatCannotBeRead) {
  const std::string torn = "{\"event\":\"step\",\"st\n";
  EXPECT_THAT(complaint(steps(1, 2) + torn + steps(3, 4), 4), StartsWith("metrics.jsonl:3: is not a line of metrics"));
  EXPECT_THAT(complaint(steps(1, 2) + torn + steps(3, 4), 0), StartsWith("metrics.jsonl:3:"));
  EXPECT_THAT(complaint(steps(1, 2) + "\n", 2), StartsWith("metrics.jsonl:3:"));
  EXPECT_THAT(complaint(steps(1, 2) + "[1]\n", 2), StartsWith("metrics.jsonl:3:"));
  EXPECT_THAT(complaint("{\"event\":\"step\",\"step\":\"1\"}\n", 0),
              StartsWith("metrics.jsonl:1: its \"step\" is not a whole number"));
  EXPECT_THAT(complaint("{\"event\":\"step\",\"step\":18446744073709551615}\n", 0), StartsWith("metrics.jsonl:1:"));
  EXPECT_THAT(complaint("{\"event\":\"step\"}\n", 0), StartsWith("metrics.jsonl:1:"));
  EXPECT_THAT(complaint("{\"event\":\"step\",\"step\":1,\"loss\":\"x\"}\n", 1), StartsWith("metrics.jsonl:1:"));
  EXPECT_EQ(complaint(steps(1, 2) + "{\"event\":\"st", 2), "read") << "torn by a kill";
  EXPECT_EQ(complaint(steps(1, 2) + "{\"event\":\"of a later gyre\",\"x\":[{}]}\n", 2), "read");
}

TEST(MetricsReader, NamesTheStepThatIsMissing) {
  EXPECT_EQ(complaint(steps(1, 9), 9), "read");
  EXPECT_EQ(complaint(steps(1, 9), 5), "read") << "what lies past the checkpoint is dropped anyway";
  EXPECT_THAT(complaint(steps(1, 4) + steps(6, 9), 9),
              StartsWith("metrics.jsonl:5: has step 6, where step 5 must come next; put back"));
  EXPECT_EQ(complaint(steps(1, 4) + steps(6, 9), 4), "read");
  EXPECT_THAT(complaint(steps(1, 4) + steps(4, 9), 9), StartsWith("metrics.jsonl:5: has step 4"));
  EXPECT_THAT(complaint(steps(2, 9), 9), StartsWith("metrics.jsonl:1: has step 2"));
  EXPECT_THAT(complaint(steps(1, 7), 9), StartsWith("metrics.jsonl:8: the lines of steps 8 to 9 are missing"));
  EXPECT_THAT(complaint("{\"ev", 9), StartsWith("metrics.jsonl:1: the lines of steps 1 to 9 are missing"));
  // The user may empty the file: an empty file is accepted, and also what a session has written that began with one.
  EXPECT_EQ(complaint("", 9), "read");
  const std::string begun = "{\"event\":\"resume\",\"step\":9,\"changed\":{}}\n";
  EXPECT_EQ(complaint(begun, 9), "read");
  EXPECT_EQ(complaint(begun + steps(10, 12), 12), "read");
  EXPECT_THAT(complaint(begun + steps(11, 12), 12), StartsWith("metrics.jsonl:2: has step 11"));
  const testing_support::TemporaryDirectory directory;
  const fs::path absent = directory / "metrics.jsonl";
  EXPECT_EQ(read_record(absent, 0).newest_step, 0);
  EXPECT_THROW(read_record(absent, 1), InputError);
}

TEST(Progress, PlainLinesWhenNotATerminal) {
  const testing_support::TemporaryDirectory directory;
  const fs::path path = directory / "log";
  std::FILE* file = std::fopen(path.c_str(), "w");
  Progress progress(file, false);
  progress.start(3, 0);
  for (int64_t step = 1; step <= 3; ++step) progress.step(step, 2.5, 100.0 * static_cast<double>(step));
  progress.message("done");
  progress.finish();
  std::fclose(file);
  const std::string text = read_file(path);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_NE(text.find("step 3/3  average loss 2.5000  300 tokens/s"), std::string::npos);
  EXPECT_NE(text.find("done\n"), std::string::npos);
}

}  // namespace
}  // namespace gyre
