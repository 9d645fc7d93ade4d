#include "gyre/data/text_sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gyre {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Le;
using ::testing::SizeIs;

constexpr size_t kChunkBytes = size_t{1} << 20;

// A sample of 1 MiB of a text of `chunks` chunks, each of lines of `line_bytes` bytes. What chunk i gives has letter
// i mod 26.
TextSample sample_of(size_t chunks, size_t line_bytes) {
  TextSample sample(static_cast<int64_t>(chunks * kChunkBytes), kChunkBytes);
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    const std::string line = std::string(line_bytes - 1, static_cast<char>('a' + chunk % 26)) + "\n";
    std::string text;
    while (text.size() + line.size() <= kChunkBytes) text += line;
    sample.begin_chunk(kChunkBytes);
    sample.add(text);
  }
  return sample;
}

size_t bytes_of(const TextSample& sample) {
  size_t bytes = 0;
  for (const std::string& line : sample.lines()) bytes += line.size();
  return bytes;
}

TEST(TextSample, GrowsWithTheVocabulary) {
  // Up to here, other sizes would give other vocabularies than earlier versions.
  EXPECT_EQ(sample_bytes(300), 1 << 20);
  EXPECT_EQ(sample_bytes(50'000), 6'400'000);
  EXPECT_EQ(sample_bytes(131'072), 16 << 20);
  EXPECT_EQ(sample_bytes(131'073), (16 << 20) + 1024);
  // 73 MB of novels, taken whole, have fewer pieces.
  EXPECT_GE(sample_bytes(256'000), 128 << 20);
  EXPECT_EQ(sample_bytes(1'000'000), 256 << 20);
}

TEST(TextSample, HasItsSizeHoweverLongTheLines) {
  // With 300 chunks, a chunk's share is 3.4 KiB.
  for (const size_t line_bytes : {20, 1000, 3400, 4096, 6000, 100'000, 1'000'000}) {
    const TextSample sample = sample_of(300, line_bytes);
    EXPECT_THAT(bytes_of(sample), AllOf(Ge(kChunkBytes * 9 / 10), Le(kChunkBytes + 4096))) << line_bytes;
    EXPECT_THAT(sample.lines(), Each(SizeIs(Le(4096U)))) << line_bytes;
  }
}

TEST(TextSample, IsSpreadOverTheText) {
  for (const size_t line_bytes : {20, 6000, 1'000'000}) {
    const TextSample sample = sample_of(300, line_bytes);
    std::string letters;
    for (const std::string& line : sample.lines()) {
      if (letters.empty() || letters.back() != line.front()) letters += line.front();
    }
    EXPECT_GE(letters.size(), 200U) << line_bytes;  // of 300 chunks
  }
}

TEST(TextSample, HasAllOfASmallText) {
  TextSample sample(30, 30);
  sample.begin_chunk(13);
  sample.add("one\n\ntwo\n");
  sample.add("end");
  sample.begin_chunk(6);
  sample.add("after");
  EXPECT_THAT(sample.lines(), ElementsAre("one", "two", "end", "after"));
}

TEST(TextSample, CutsLongLinesBetweenCharacters) {
  std::string line;
  while (line.size() < 6000) line += "\u6f22";  // three bytes
  TextSample sample(6000, 6000);
  sample.begin_chunk(6000);
  sample.add(line);
  EXPECT_THAT(sample.lines(), ElementsAre(SizeIs(4095), SizeIs(6000 - 4095)));
}

}  // namespace
}  // namespace gyre
