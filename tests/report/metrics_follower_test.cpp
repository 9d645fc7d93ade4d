// Tests the reader of a metrics.jsonl that grows: every line once, and a file that was replaced from its beginning.
#include "gyre/report/metrics_follower.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string step(int number) {
  return fmt::format(R"({{"event":"step","step":{}}})", number) + "\n";
}

class MetricsFollowerTest : public ::testing::Test {
 protected:
  // The steps whose lines a call visits; 0: it begins.
  std::vector<int64_t> read() {
    std::vector<int64_t> steps;
    follower_.read([&] { steps.push_back(0); }, [&](const MetricsLine& line) { steps.push_back(line.step()); });
    return steps;
  }
  std::string complaint() {
    try {
      read();
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  void append(const std::string& text) const { std::ofstream(path_, std::ios::app) << text; }

  testing_support::TemporaryDirectory directory_;
  fs::path path_ = directory_ / "metrics.jsonl";
  MetricsFollower follower_{path_, "put it right"};
};

TEST_F(MetricsFollowerTest, VisitsEveryLineOnce) {
  EXPECT_THAT(read(), ElementsAre(0)) << "there is no file yet";
  append(step(1) + "{\"event\":\"st");
  EXPECT_THAT(read(), ElementsAre(0, 1));
  EXPECT_THAT(read(), IsEmpty()) << "the second line is not complete";
  append("ep\",\"step\":2}\n" + step(3));
  EXPECT_THAT(read(), ElementsAre(2, 3));
  EXPECT_THAT(read(), IsEmpty());
}

TEST_F(MetricsFollowerTest, BeginsAgainWhereTheFileIsAnother) {
  append(step(1) + step(2));
  EXPECT_THAT(read(), ElementsAre(0, 1, 2));
  write_file_atomic(path_, step(1) + step(3) + step(4));
  EXPECT_THAT(read(), ElementsAre(0, 1, 3, 4));
  write_file_atomic(path_, step(1));
  EXPECT_THAT(read(), ElementsAre(0, 1));
  fs::remove(path_);
  EXPECT_THAT(read(), ElementsAre(0));
  append(step(7));
  EXPECT_THAT(read(), ElementsAre(0, 7));
}

TEST_F(MetricsFollowerTest, NamesTheLineOfTheFileAndBeginsAgain) {
  append(step(1) + step(2));
  read();
  append(step(3) + "nonsense\n");
  EXPECT_THAT(complaint(), HasSubstr("metrics.jsonl:4: is not a line of metrics; put it right"));
  EXPECT_THAT(complaint(), HasSubstr("metrics.jsonl:4:"));
  write_file_atomic(path_, step(1) + step(2) + step(3));
  EXPECT_THAT(read(), ElementsAre(0, 1, 2, 3));
}

TEST_F(MetricsFollowerTest, LinesMayCrossTheBlocksThatAreReadAtATime) {
  const std::string blanks(3 << 20, ' ');  // as JSON allows
  for (int number = 1; number <= 5; ++number) append(blanks + step(number));
  EXPECT_THAT(read(), ElementsAre(0, 1, 2, 3, 4, 5));
}

}  // namespace
}  // namespace gyre
