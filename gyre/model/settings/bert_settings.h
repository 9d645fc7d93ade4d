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
  int64_t classify_token = -1;
  int64_t separator_token = -1;
  int64_t mask_token = -1;

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("norm", self.norm, one_of({"post", "pre"}), "where a block's norms are: after its branches, or before");
    visit("sentence_order", self.sentence_order, Range{},
          "exchange the two segments of half the sequences, and learn to tell");
    visit("classify_token", self.classify_token, between(-1, 1 << 30),
          "number of [CLS] where the tokenizer has it, and then of the two below too; -1: the three follow the "
          "tokenizer's vocabulary");
    visit("separator_token", self.separator_token, between(-1, 1 << 30), "number of [SEP]");
    visit("mask_token", self.mask_token, between(-1, 1 << 30), "number of [MASK]");
  }
  bool operator==(const BertSettings&) const = default;
};

ModelKind bert_kind();

// The tokens that its sequences have besides the text's: behind the text's vocabulary, or where the settings say.
struct SpecialTokens {
  explicit SpecialTokens(int64_t text_vocabulary)
      : classify(text_vocabulary), separator(text_vocabulary + 1), mask(text_vocabulary + 2), text(text_vocabulary) {}
  // Of a model whose whole vocabulary has that size.
  SpecialTokens(const BertSettings& settings, int64_t vocabulary);
  int64_t classify, separator, mask;
  int64_t text;  // tokens that random replacements are drawn from
  static constexpr int64_t kCount = 3;
};
// Of a sequence, [CLS] segment A [SEP] segment B [SEP].
inline constexpr int64_t kTokensAroundSegments = 3;
// Share of the text's tokens that are asked for (Devlin et al., 2018, section 3.1).
inline constexpr double kMaskedShare = 0.15;

}  // namespace gyre
