// Random streams: known answers of Philox, independence of order, distribution.
#include "gyre/core/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gyre {
namespace {

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
