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
  // One file after the other. `name` is what errors call them together.
  TokenSequence(std::vector<std::shared_ptr<const TokenFile>> files, std::string name);

  const std::string& name() const { return name_; }
  int64_t size() const { return size_; }
  // Tokens [begin, begin + out.size()), also where they lie in several files. RunError as TokenFile::read.
  void read(int64_t begin, std::span<int64_t> out, int64_t vocabulary) const;
  // Tokens [begin, begin + size) of these, by themselves.
  TokenSequence part(int64_t begin, int64_t size) const;

 private:
  std::vector<std::shared_ptr<const TokenFile>> files_;
  std::vector<int64_t> beginnings_;  // of each file, and where the last ends
  std::string name_;
  int64_t first_ = 0, size_ = 0;
};

// One source of a mixture.
struct WeightedTokens {
  std::string name;
  double weight = 1;
  TokenSequence tokens;
};

}  // namespace gyre
