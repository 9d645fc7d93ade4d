// The interface of the sentencepiece module. sentencepiece carries its own protobuf, which collides with libtorch's
// when both are linked into one program; so it lives in a module that is loaded with its own symbols first
// (RTLD_DEEPBIND).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gyre/data/tokenizer.h"

namespace gyre::bpe {

// What the module exports, under kEntryName.
struct Module {
  // The tokenizer of a serialised model, or null when it is not one.
  Tokenizer* (*load)(const std::string& model);
  // Trains on lines; fills `model` and returns an empty string, or returns what is wrong.
  std::string (*train)(const std::vector<std::string>& lines, int64_t vocabulary_size, std::string& model);
};

inline constexpr const char* kEntryName = "gyre_bpe_module";

}  // namespace gyre::bpe
