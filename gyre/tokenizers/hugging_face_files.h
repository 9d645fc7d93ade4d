// Any tokenizer of ours as the files that Hugging Face's AutoTokenizer reads.
#pragma once

#include <string>

#include "gyre/tokenizers/tokenizer_model.h"

namespace gyre {

struct HuggingFaceFiles {
  std::string tokenizer;           // tokenizer.json
  std::string tokenizer_config;    // tokenizer_config.json
  std::string special_tokens_map;  // special_tokens_map.json
};

// A tokenizer.json, and a tokenizer_config.json that names the same end of documents, are given back as they came.
// InputError for what has no counterpart there.
HuggingFaceFiles hugging_face_files(const TokenizerModel& model, const std::string& origin);

}  // namespace gyre
