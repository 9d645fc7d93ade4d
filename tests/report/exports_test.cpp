// Tests the exports of metrics.jsonl to TensorBoard and Prometheus (tests/interop/test_metrics.py reads them with these
// programs' own readers).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gyre/core/files.h"
#include "gyre/report/metrics.h"
#include "gyre/report/prometheus.h"
#include "gyre/report/tensorboard.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kMetrics =
    R"({"event":"step","step":1,"loss":2.5,"lr":0.125,"grad_norm":null,"tokens":64,"tokens_per_second":10.0,"seconds":4.0}
{"event":"resume","step":1,"changed":{}}
{"event":"step","step":2,"loss":2.25,"lr":0.125,"grad_norm":1.0,"tokens":128,"tokens_per_second":10.0,"seconds":1.0}
{"event":"segment","step":2,"seconds":1.0,"bubbles":[0.25,null,0.5],"delays":[]}
)";

class ExportsTest : public ::testing::Test {
 protected:
  fs::path metrics(const std::string& text) const {
    const fs::path path = root_ / "metrics.jsonl";
    std::ofstream(path) << text;
    return path;
  }
  std::vector<fs::path> event_files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(root_ / "tb")) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
  }
  testing_support::TemporaryDirectory root_;
};

// An event of step 1, made by TensorBoard's own writer.
TEST_F(ExportsTest, ARecordIsTensorBoardsToTheByte) {
  const auto hex = [](const std::string& bytes) {
    std::string text;
    for (const char c : bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(c));
    return text;
  };
  EXPECT_EQ(hex(tensorboard_record("123456789")), "090000000000000037f97139313233343536373839e5b08ac7");
  for_each_metrics_line(R"({"event":"eval","step":300,"val_loss":0.5})"
                        "\n",
                        "here", "", [&](const MetricsLine& line) {
                          EXPECT_EQ(hex(tensorboard_scalars(1.5, line.step(), scalars_of(line))),
                                    "2600000000000000734fe30009000000000000f83f10ac022a180a160a0f76616c69646174696f6e2f"
                                    "6c6f7373150000003fcf339813");
                        });
}

TEST_F(ExportsTest, ASessionsEventsReplaceThoseOfEarlierOnes) {
  const TensorBoardWriter first(root_ / "tb", root_ / "missing", 100);
  const TensorBoardWriter second(root_ / "tb", metrics(kMetrics), 200);
  std::ofstream(root_ / "tb/notes.txt") << "mine";
  const TensorBoardWriter third(root_ / "tb", metrics(kMetrics), 300);
  const auto files = event_files();
  ASSERT_EQ(files.size(), 3u);  // the last one before stays, empty
  EXPECT_EQ(fs::file_size(files[0]), 0u);
  EXPECT_THAT(read_file(files[1]), HasSubstr("train/loss"));
  EXPECT_THAT(read_file(files[1]), HasSubstr("bubble/worker_2"));
  EXPECT_THAT(read_file(files[1]), Not(HasSubstr("bubble/worker_1")));
  EXPECT_EQ(files[2].filename(), "notes.txt");
}

// Those of the last session end when metrics.jsonl was last written; those of earlier ones came before by the sessions'
// own seconds.
TEST_F(ExportsTest, EarlierSessionsEventsHaveTheTimesTheyHadThen) {
  const TensorBoardWriter writer(root_ / "tb", metrics(kMetrics), 300);
  std::string expected = tensorboard_version(295) + tensorboard_session_start(295, 0);
  const std::vector<double> times = {299, 299, 300, 300};  // of the lines: a session of four seconds, and one of one
  size_t line_number = 0;
  for_each_metrics_line(kMetrics, "here", "", [&](const MetricsLine& line) {
    const std::vector<Scalar> scalars = scalars_of(line);
    const double time = times.at(line_number++);
    if (!scalars.empty()) expected += tensorboard_scalars(time, line.step(), scalars);
  });
  EXPECT_EQ(line_number, times.size());
  EXPECT_EQ(read_file(event_files().at(0)), expected);
}

TEST_F(ExportsTest, PrometheusHasWhatCameLast) {
  const fs::path path = root_ / "gyre.prom";
  const PrometheusFile file(path, "a \"run\"\\", 50, metrics(kMetrics));
  file.write();
  const std::string text = read_file(path);
  EXPECT_THAT(text, HasSubstr("# TYPE gyre_loss gauge\ngyre_loss{run=\"a \\\"run\\\"\\\\\"} 2.25\n"));
  EXPECT_THAT(text, HasSubstr("gyre_bubble_ratio{run=\"a \\\"run\\\"\\\\\",worker=\"2\"} 0.5\n"));
  EXPECT_THAT(text, Not(HasSubstr("worker=\"1\"")));
  EXPECT_THAT(text, Not(HasSubstr("gyre_validation_loss")));
  EXPECT_THAT(text, HasSubstr("gyre_running{run=\"a \\\"run\\\"\\\\\"} 1\n"));
  EXPECT_THAT(text, EndsWith("\n"));
  EXPECT_EQ(std::distance(fs::directory_iterator(root_.path()), fs::directory_iterator{}), 2);  // it and the metrics
}

TEST_F(ExportsTest, PrometheusSaysWhatIsSavedAndThatARunHasEnded) {
  const fs::path path = root_ / "gyre.prom";
  MetricsWriter writer(root_ / "metrics.jsonl");
  writer.checkpoint(2, 0.5, 0.5);
  PrometheusFile file(path, "run", 50, root_ / "metrics.jsonl");
  file.write();
  EXPECT_THAT(read_file(path), HasSubstr("gyre_checkpoint_step{run=\"run\"} 2\n"));
  writer.tell(file);
  writer.checkpoint(3, 0.5, 0.5);
  EXPECT_THAT(read_file(path), HasSubstr("gyre_checkpoint_step{run=\"run\"} 3\n"));
  EXPECT_THAT(read_file(path), HasSubstr("gyre_running{run=\"run\"} 1\n"));
  writer.end({});
  EXPECT_THAT(read_file(path), HasSubstr("gyre_running{run=\"run\"} 0\n"));
  // A session that follows one that has ended.
  PrometheusFile(path, "run", 50, root_ / "metrics.jsonl").write();
  EXPECT_THAT(read_file(path), HasSubstr("gyre_running{run=\"run\"} 1\n"));
}

// The run was cut into fewer stages, has no averaged weights any more, and its last loss is not finite.
TEST_F(ExportsTest, PrometheusHasNothingThatTheLastLineDoesNotHave) {
  const fs::path path = root_ / "gyre.prom";
  const std::string earlier = R"({"event":"segment","step":1,"delays":[2,1,0],"bubbles":[0.1,0.2,0.3]})"
                              "\n"
                              R"({"event":"eval","step":1,"val_loss":3.5,"ema_val_loss":3.75})"
                              "\n"
                              R"({"event":"step","step":1,"loss":3,"grad_norm":1,"tokens":64})"
                              "\n"
                              R"({"event":"resume","step":1,"changed":{}})"
                              "\n"
                              R"({"event":"step","step":2,"loss":null,"grad_norm":null,"tokens":128})"
                              "\n";
  PrometheusFile(path, "run", 50, metrics(earlier)).write();
  EXPECT_THAT(read_file(path), AllOf(HasSubstr("gyre_tokens{run=\"run\"} 128\n"), Not(HasSubstr("gyre_loss")),
                                     Not(HasSubstr("gyre_gradient_norm"))));
  EXPECT_THAT(read_file(path), AllOf(HasSubstr("stage=\"2\""), HasSubstr("gyre_validation_ema_loss")))
      << "still the last";
  const std::string later = R"({"event":"segment","step":2,"delays":[1,0],"bubbles":[]})"
                            "\n"
                            R"({"event":"eval","step":2,"val_loss":3.25})"
                            "\n"
                            R"({"event":"step","step":3,"loss":2.5,"grad_norm":2,"tokens":192})"
                            "\n";
  PrometheusFile(path, "run", 50, metrics(earlier + later)).write();
  const std::string text = read_file(path);
  EXPECT_THAT(text,
              AllOf(HasSubstr("gyre_loss{run=\"run\"} 2.5\n"), HasSubstr("gyre_validation_loss{run=\"run\"} 3.25\n")));
  EXPECT_THAT(text, AllOf(HasSubstr("gyre_delay_updates{run=\"run\",stage=\"1\"} 0\n"), Not(HasSubstr("stage=\"2\""))));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("gyre_bubble_ratio")), Not(HasSubstr("gyre_validation_ema_loss"))));
}

// The most memory that this process has had, in MiB.
int64_t peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss >> 10;
}

TEST_F(ExportsTest, EarlierSessionsAreReadInPieces) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer keeps what is freed";
#endif
  constexpr int64_t kLine = 1 << 16, kMiB = 128;
  std::ofstream file(root_ / "metrics.jsonl");
  const std::string blank(kLine, ' ');
  for (int64_t step = 1; step <= (kMiB << 20) / kLine; ++step) {
    file << fmt::format("{{\"event\":\"step\",\"step\":{},\"loss\":2.0{}}}\n", step, blank);
  }
  file.close();
  const int64_t before = peak_memory();
  const TensorBoardWriter events(root_ / "tb", root_ / "metrics.jsonl", 100);
  PrometheusFile(root_ / "gyre.prom", "run", 5000, root_ / "metrics.jsonl").write();
  EXPECT_LT(peak_memory() - before, kMiB / 2);
  EXPECT_THAT(read_file(root_ / "gyre.prom"), HasSubstr(fmt::format("gyre_step{{run=\"run\"}} {}", kMiB << 4)));
}

TEST_F(ExportsTest, EveryLineIsHeardOnceItIsWritten) {
  struct Heard final : MetricsListener {
    void hear(const MetricsLine& line) override { text += std::string(line.text()) + "\n"; }
    std::string text;
  } heard;
  MetricsWriter writer(root_ / "metrics.jsonl");
  writer.eval(1, 3.0);
  writer.tell(heard);
  writer.eval(2, 0.1);
  writer.segment({3, 1.0, {0.25}, {}, {}, {4096, 12}});
  const std::string all = read_file(root_ / "metrics.jsonl");
  EXPECT_EQ(all.substr(all.find('\n') + 1), heard.text);
  EXPECT_THAT(heard.text, HasSubstr(R"({"event":"segment","step":3,"seconds":1.0,"bubbles":[0.25],"delays":[],)"
                                    R"("peak_tensor_bytes":[],"peak_resident_bytes":[4096,12]})"));
}

}  // namespace
}  // namespace gyre
