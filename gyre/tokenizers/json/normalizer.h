// Normalizers, which change a text before it is split: the "normalizer" of a tokenizer.json.
#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gyre/tokenizers/json/regex.h"

namespace gyre {

// How a normalizer is applied to one text.
struct NormalizerUse {
  bool continues;    // the text follows a cut, so nothing is added before it
  size_t max_bytes;  // longer results may be incomplete, but must be longer than this
  RegexScratch& scratch;
};

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual std::string apply(std::string text, const NormalizerUse& use) const = 0;
  // Whether every result begins with what the first character of the text became.
  virtual bool keeps_beginning() const = 0;
};

// The steps of a normalizer; none for null. Throws InputError naming what this gyre does not support.
std::vector<std::unique_ptr<Normalizer>> parse_normalizer(const nlohmann::json& json, const std::string& origin);

}  // namespace gyre
