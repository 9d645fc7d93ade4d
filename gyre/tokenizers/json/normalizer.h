// What is done to a text before it is split: the "normalizer" of a tokenizer.json.
#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gyre/tokenizers/json/regex.h"

namespace gyre {

// How a normalizer is used on one text.
struct NormalizerUse {
  bool continues;  // the text follows a cut, and has what a beginning has already
  size_t most;     // bytes; what becomes longer may be left incomplete, as long as it is longer
  RegexScratch& scratch;
};

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual std::string apply(std::string text, const NormalizerUse& use) const = 0;
};

// The steps of a normalizer; none for null. InputError naming what this gyre lacks.
std::vector<std::unique_ptr<Normalizer>> parse_normalizer(const nlohmann::json& json, const std::string& origin);

}  // namespace gyre
