// What a BERT's vocabulary has behind the tokenizer's own.
#pragma once

#include <cstdint>

namespace gyre {

struct SpecialTokens {
  explicit SpecialTokens(int64_t tokenizer_vocabulary)
      : classify(tokenizer_vocabulary), separator(tokenizer_vocabulary + 1), mask(tokenizer_vocabulary + 2) {}
  int64_t classify, separator, mask;
  static constexpr int64_t kCount = 3;
};
// Of a sequence, [CLS] segment A [SEP] segment B [SEP].
inline constexpr int64_t kTokensAroundSegments = 3;

}  // namespace gyre
