// BERT's own options, its entry in the registry of models, and its special tokens.
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
    visit("norm", self.norm, one_of({"post", "pre"}),
          "where the norms of a block are. post: after its branches; pre: before them");
    visit("sentence_order", self.sentence_order, Range{},
          "swap the two segments in half of the sequences, and train the model to tell which are swapped. The loss is "
          "then the sum of two: that of the masked tokens and that of the order");
    visit("classify_token", self.classify_token, between(-1, 1 << 30),
          "id of [CLS]; then give the two ids below too. -1: the ids of the three are those of [CLS], [SEP] and [MASK] "
          "in the data's tokenizer, if it has them and vocabulary is 0; otherwise they are the last of the vocabulary");
    visit("separator_token", self.separator_token, between(-1, 1 << 30), "id of [SEP]; -1: see classify_token");
    visit("mask_token", self.mask_token, between(-1, 1 << 30), "id of [MASK]; -1: see classify_token");
  }
  bool operator==(const BertSettings&) const = default;
};

ModelKind bert_kind();

// The special tokens of BERT's sequences: those given in the settings, which may be the tokenizer's own
// (special_tokens.h), or the three numbers after the text's vocabulary.
struct SpecialTokens {
  explicit SpecialTokens(int64_t text_vocabulary)
      : classify(text_vocabulary), separator(text_vocabulary + 1), mask(text_vocabulary + 2), text(text_vocabulary) {}
  // vocabulary: size of the model's whole vocabulary, special tokens included.
  SpecialTokens(const BertSettings& settings, int64_t vocabulary);
  int64_t classify, separator, mask;
  int64_t text;  // random replacements are drawn from the tokens below this number
  static constexpr int64_t kCount = 3;
};
// Special tokens in a sequence: [CLS] segment A [SEP] segment B [SEP].
inline constexpr int64_t kTokensAroundSegments = 3;
// Fraction of the text's tokens that the model must predict (Devlin et al., 2018, section 3.1).
inline constexpr double kMaskedShare = 0.15;

}  // namespace gyre
