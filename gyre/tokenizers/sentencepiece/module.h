// The interface of the sentencepiece module. sentencepiece carries its own protobuf, which collides with libtorch's
// when both are linked into one program; so it lives in a module that is loaded with its own symbols first
// (RTLD_DEEPBIND).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gyre::sentencepiece_module {

// The library's own encoding and decoding, of a model that it has taken.
class Processor {
 public:
  virtual ~Processor() = default;
  virtual int64_t pieces() const = 0;
  virtual int32_t end_of_sentence() const = 0;  // -1: none
  virtual void encode(std::string_view text, std::vector<int32_t>& tokens) const = 0;
  virtual std::string decode(std::span<const int32_t> tokens) const = 0;
};

// What the module exports, under kEntryName.
struct Module {
  // Of a serialised model, or null when it is not one.
  Processor* (*load)(const std::string& model);
  // Trains on lines; fills `model` and returns an empty string, or returns what is wrong.
  std::string (*train)(const std::vector<std::string>& lines, int64_t vocabulary_size, std::string& model);
};

inline constexpr const char* kEntryName = "gyre_sentencepiece_module";

}  // namespace gyre::sentencepiece_module
