// BERT's batches: [CLS] segment A [SEP] segment B [SEP], with some tokens masked for the model to predict.
#pragma once

#include <memory>

#include "gyre/batches/batch.h"
#include "gyre/model/settings/bert_settings.h"

namespace gyre {

class MaskedBatches final : public BatchSource {
 public:
  // `text` gives sequences of context - kTokensAroundSegments tokens. Of those, 15% (rounded, at least one) are
  // targets; of the targets, 80% are replaced by the mask, 10% by a random token, and 10% stay (Devlin et al., 2018,
  // section 3.1). All draws depend only on (seed, index, sequence). sentence_order: half the sequences have their
  // segments exchanged, and column 0 of the targets says whether (0 in order, 1 exchanged).
  MaskedBatches(std::unique_ptr<BatchSource> text, const SpecialTokens& special, int64_t seed, bool sentence_order);
  Batch batch(int64_t index) const override;
  int64_t tokens_per_batch() const override { return tokens_per_batch_; }

 private:
  std::unique_ptr<BatchSource> text_;
  SpecialTokens special_;
  uint64_t seed_;
  bool sentence_order_;
  int64_t tokens_per_batch_;
};

}  // namespace gyre
