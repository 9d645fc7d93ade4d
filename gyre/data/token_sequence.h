// The tokens of one or several files as one sequence.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gyre/data/token_file.h"

namespace gyre {

class TokenSequence {
 public:
  // The tokens of the files in this order. `name` is what errors call the sequence.
  TokenSequence(std::vector<std::shared_ptr<const TokenFile>> files, std::string name);

  const std::string& name() const { return name_; }
  int64_t size() const { return size_; }
  // Tokens [begin, begin + out.size()), which may span files. Throws RunError as TokenFile::read does.
  void read(int64_t begin, std::span<int64_t> out, int64_t vocabulary) const;
  // The sequence of the tokens [begin, begin + size).
  TokenSequence part(int64_t begin, int64_t size) const;

 private:
  std::vector<std::shared_ptr<const TokenFile>> files_;
  std::vector<int64_t> beginnings_;  // where each file begins, and where the last ends
  std::string name_;
  int64_t first_ = 0, size_ = 0;
};

// One source of a mixture.
struct WeightedTokens {
  std::string name;
  double weight = 1;
  TokenSequence tokens;
  std::string if_too_few = "give more text";  // what helps then, for errors
};

}  // namespace gyre
