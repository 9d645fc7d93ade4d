// Random streams: known answers of Philox, independence of order, distribution.
#include "gyre/core/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace gyre {
namespace {

// The known answers of Random123 (kat_vectors, philox4x32 with 10 rounds; Salmon et al., SC 2011).
TEST(Philox, GivesThePublishedAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32_10({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, IsAFunctionOfItsKeyAlone) {
  RandomStream a(7, StreamPurpose::Test, 3, 1), b(7, StreamPurpose::Test, 3, 1);
  const auto third = a.block(2);
  for (int i = 0; i < 8; ++i) b.next_u32();
  for (uint32_t word : third) EXPECT_EQ(b.next_u32(), word);
}

TEST(RandomStream, KeysThatDifferInOnePartDiffer) {
  const auto base = RandomStream(7, StreamPurpose::Test, 3, 1).block(0);
  EXPECT_NE(base, RandomStream(8, StreamPurpose::Test, 3, 1).block(0));
  EXPECT_NE(base, RandomStream(7, StreamPurpose::Dropout, 3, 1).block(0));
  EXPECT_NE(base, RandomStream(7, StreamPurpose::Test, 4, 1).block(0));
  EXPECT_NE(base, RandomStream(7, StreamPurpose::Test, 3, 2).block(0));
  EXPECT_NE(base, RandomStream(7, StreamPurpose::Test, 3 + (uint64_t{1} << 32), 1).block(0));
}

TEST(RandomStream, BelowIsUniform) {
  RandomStream stream(1, StreamPurpose::Test, 0);
  std::vector<int> counts(7);
  constexpr int kDraws = 70000;
  for (int i = 0; i < kDraws; ++i) ++counts[stream.below(7)];
  double chi_squared = 0;
  for (int count : counts) chi_squared += std::pow(count - kDraws / 7.0, 2) / (kDraws / 7.0);
  EXPECT_LT(chi_squared, 22.5);  // 6 degrees of freedom, p = 0.001
}

TEST(RandomStream, NormalsHaveTheMomentsAskedFor) {
  std::vector<float> values(200001);
  RandomStream(1, StreamPurpose::Test, 0).fill_normal(values, 0.5f);
  double sum = 0, squares = 0, fourth = 0;
  for (float v : values) {
    sum += v;
    squares += double{v} * v;
    fourth += std::pow(v, 4);
  }
  const double n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0, 0.005);
  EXPECT_NEAR(squares / n, 0.25, 0.005);
  EXPECT_NEAR(fourth / n / std::pow(squares / n, 2), 3.0, 0.1);
}

}  // namespace
}  // namespace gyre
