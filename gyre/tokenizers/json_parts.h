// Builds the parts of a tokenizer.json, for sentencepiece models, for bytes, and for vocabularies that came without
// one.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace gyre::json_parts {

using Json = nlohmann::json;

// An entry of "added_tokens", which is found literally in texts.
inline Json added_token(int64_t id, const std::string& content, bool special) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", special}};
}

inline Json bpe(const Json& vocabulary, const Json& merges) {
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", vocabulary},
          {"merges", merges}};
}

inline Json document(const Json& added, const Json& normalizer, const Json& pre_tokenizer, const Json& decoder,
                     const Json& model) {
  return {{"version", "1.0"},          {"truncation", nullptr},    {"padding", nullptr},
          {"added_tokens", added},     {"normalizer", normalizer}, {"pre_tokenizer", pre_tokenizer},
          {"post_processor", nullptr}, {"decoder", decoder},       {"model", model}};
}

}  // namespace gyre::json_parts
