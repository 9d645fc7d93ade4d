// A tokenizer.json that was made from a sentencepiece model.
#pragma once

#include <string_view>

#include "gyre/tokenizers/sentencepiece/sentencepiece_model.h"

namespace gyre {

// Whether it is of the model type Unigram and has the model's pieces as its tokens, with no others added.
bool is_unigram_of(std::string_view tokenizer_json, const SentencePieceModel& model);

}  // namespace gyre
