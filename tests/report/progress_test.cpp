// Tests the progress line of a run.
#include "gyre/report/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace gyre {
namespace {

using ::testing::HasSubstr;

// The line's text after the last update.
std::string last_line_after(const std::vector<double>& losses) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::tmpfile(), &std::fclose);
  Progress progress(out.get(), false);
  progress.start(static_cast<int64_t>(losses.size()), 0);
  for (size_t i = 0; i < losses.size(); ++i) progress.step(static_cast<int64_t>(i) + 1, losses[i], 1000);
  std::rewind(out.get());
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), out.get()));
  return text.substr(text.rfind("step "));
}

TEST(Progress, ShowsAnAverageThatBeginsWithTheFirstLoss) {
  EXPECT_THAT(last_line_after({4, 2}), HasSubstr("step 2/2  average loss 3.9000"));
}

TEST(Progress, ALossThatIsNotFiniteIsNoPartOfALaterAverage) {
  EXPECT_THAT(last_line_after({std::nan(""), 4, 2}), HasSubstr("average loss 3.9000"));
  EXPECT_THAT(last_line_after({4, INFINITY, 3}), HasSubstr("average loss 3.0000"));
  EXPECT_THAT(last_line_after({4, std::nan("")}), HasSubstr("average loss not finite"));
}

TEST(Progress, MessagesShowWhatWouldControlATerminal) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::tmpfile(), &std::fclose);
  Progress(out.get(), false).message("resuming \x1b[31m\x07\nat step 2");
  std::rewind(out.get());
  std::string text(64, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), out.get()));
  EXPECT_EQ(text, "resuming \\x1b[31m\\x07\nat step 2\n");
}

}  // namespace
}  // namespace gyre
