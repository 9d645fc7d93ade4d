// Bytes as tokens.
#include <gtest/gtest.h>

#include "gyre/tokenizers/tokenizer.h"

namespace gyre {
namespace {

TEST(ByteTokenizer, EveryByteIsItsToken) {
  std::vector<int32_t> tokens = {7};
  make_byte_tokenizer()->encode("a\xff", tokens);
  EXPECT_EQ(tokens, (std::vector<int32_t>{7, 'a', 255}));
}

TEST(ByteTokenizer, ManyTextsAreMovedRarely) {
  const auto tokenizer = make_byte_tokenizer();
  std::vector<int32_t> tokens;
  int moves = 0;
  for (int text = 0; text < 10'000; ++text) {
    const size_t before = tokens.capacity();
    tokenizer->encode("word", tokens);
    if (tokens.capacity() != before) ++moves;
  }
  EXPECT_LT(moves, 50);
}

}  // namespace
}  // namespace gyre
