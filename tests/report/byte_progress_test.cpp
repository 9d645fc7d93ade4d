// Tests the progress line of a command that goes through files.
#include "gyre/report/byte_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>

namespace gyre {
namespace {

class ByteProgressTest : public ::testing::Test {
 protected:
  void after(double seconds, const std::string& doing, int64_t done, int64_t total) {
    now_ += std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
    progress_.at(doing, done, total);
  }
  std::string lines() const {
    std::rewind(out_.get());
    std::string text(4096, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), out_.get()));
    return text;
  }

 private:
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out_{std::tmpfile(), &std::fclose};
  std::chrono::steady_clock::time_point now_{};
  ByteProgress progress_{out_.get(), false, [this] { return now_; }};
};

TEST_F(ByteProgressTest, SpeedIsThatOfTheBytesSinceItsClockBegan) {
  after(0, "reading", 50'000'000, 200'000'000);
  after(10, "reading", 100'000'000, 200'000'000);
  EXPECT_EQ(lines(), "reading 95.4 MiB of 190.7 MiB  5.0 MB/s  ETA 0:20\n");
}

TEST_F(ByteProgressTest, APassThatHasJustBegunHasNoSpeed) {
  after(0, "training", 1'000'000, 0);
  after(10, "encoding", 1'258'291, 2'000'000);
  EXPECT_EQ(lines(), "encoding 1.2 MiB of 1.9 MiB\n");
}

}  // namespace
}  // namespace gyre
