// Writes any of gyre's tokenizers as the files that Hugging Face's AutoTokenizer reads.
#pragma once

#include <string>

#include "gyre/tokenizers/tokenizer_model.h"

namespace gyre {

struct HuggingFaceFiles {
  std::string tokenizer;           // tokenizer.json
  std::string tokenizer_config;    // tokenizer_config.json
  std::string special_tokens_map;  // special_tokens_map.json
};

// A tokenizer.json is returned unchanged, and so is a tokenizer_config.json that names the same end of documents. But
// what was made from BERT's vocab.txt gets the post-processor and the names of special tokens that transformers needs.
// Throws InputError for a tokenizer that has no such form.
HuggingFaceFiles hugging_face_files(const TokenizerModel& model, const std::string& origin);

}  // namespace gyre
