// The interface of the sentencepiece module. sentencepiece carries its own protobuf, which collides with libtorch's
// when both are linked into one program; so it is in a module that is loaded with RTLD_DEEPBIND, which prefers the
// module's own symbols.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gyre::sentencepiece_module {

// The library's encoding and decoding with one loaded model.
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
  // Makes a processor from a serialised model; null if it is not one. The caller owns the result.
  Processor* (*load)(const std::string& model);
  // Trains on lines. Fills `model` and returns an empty string, or returns an error message.
  std::string (*train)(const std::vector<std::string>& lines, int64_t vocabulary_size, std::string& model);
};

inline constexpr const char* kEntryName = "gyre_sentencepiece_module";

}  // namespace gyre::sentencepiece_module
