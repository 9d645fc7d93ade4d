// What BERT alone is told, and what others need to know of it.
#pragma once

#include <cstdint>
#include <string>

#include "gyre/core/options.h"
#include "gyre/model/settings/model_kind.h"

namespace gyre {

// [model.bert]
struct BertSettings {
  std::string norm = "post";
  bool sentence_order = false;

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("norm", self.norm, one_of({"post", "pre"}), "where a block's norms are: after its branches, or before");
    visit("sentence_order", self.sentence_order, Range{},
          "exchange the two segments of half the sequences, and learn to tell");
  }
  bool operator==(const BertSettings&) const = default;
};

ModelKind bert_kind();

// What its vocabulary has behind the tokenizer's own.
struct SpecialTokens {
  explicit SpecialTokens(int64_t tokenizer_vocabulary)
      : classify(tokenizer_vocabulary), separator(tokenizer_vocabulary + 1), mask(tokenizer_vocabulary + 2) {}
  int64_t classify, separator, mask;
  static constexpr int64_t kCount = 3;
};
// Of a sequence, [CLS] segment A [SEP] segment B [SEP].
inline constexpr int64_t kTokensAroundSegments = 3;
// Share of the text's tokens that are asked for (Devlin et al., 2018, section 3.1).
inline constexpr double kMaskedShare = 0.15;

}  // namespace gyre
