// What is done to a text before it is split: the "normalizer" of a tokenizer.json.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gyre/tokenizers/json/regex.h"

namespace gyre {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // `continues`: the text follows a cut, and has what a beginning has already.
  virtual std::string apply(std::string text, bool continues, RegexScratch& scratch) const = 0;
};

// The steps of a normalizer; none for null. InputError naming what this gyre lacks.
std::vector<std::unique_ptr<Normalizer>> parse_normalizer(const nlohmann::json& json, const std::string& origin);

}  // namespace gyre
