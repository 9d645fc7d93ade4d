// A test fixture: a directory for texts and tokens, and gyre prepare on them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/core/random.h"
#include "gyre/data/prepare.h"
#include "gyre/data/sources.h"
#include "support/temporary_directory.h"

namespace gyre {

namespace fs = std::filesystem;

// What gyre prepare made.
inline Dataset open_data(const fs::path& directory) {
  DataSettings settings;
  settings.tokens = directory;
  return Dataset::open(settings);
}

inline TokenSequence tokens_of(const fs::path& file) {
  return {{std::make_shared<TokenFile>(file)}, file.string()};
}

class DataTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& content) {
    std::ofstream(directory_ / name, std::ios::binary) << content;
    return (directory_ / name).string();
  }
  PrepareOptions options(std::vector<std::string> texts, const std::string& tokenizer = "byte") {
    PrepareOptions options;
    options.texts = std::move(texts);
    options.out = directory_ / "tokens";
    options.tokenizer = tokenizer;
    options.vocabulary_size = 400;
    options.overwrite = true;
    return options;
  }
  std::string complaint(const PrepareOptions& options) {
    try {
      prepare(options);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  }
  template <typename File>
  std::vector<int64_t> tokens(const File& file) {
    std::vector<int64_t> tokens(static_cast<size_t>(file.size()));
    file.read(0, tokens, int64_t{1} << 32);
    return tokens;
  }
  // The tokens of the only source.
  static TokenSequence train_of(const fs::path& data) { return open_data(data).train().at(0).tokens; }
  static TokenSequence val_of(const fs::path& data) { return open_data(data).val().at(0).tokens; }

  const testing_support::TemporaryDirectory temporary_;
  const fs::path directory_ = temporary_.path();
};

inline std::string plain_text(size_t words) {
  RandomStream stream(1, StreamPurpose::Test, 1);
  std::string text;
  for (size_t i = 0; i < words; ++i) {
    for (uint64_t j = 1 + stream.below(7); j > 0; --j) text += static_cast<char>('a' + stream.below(26));
    text += i % 9 == 8 ? "\n" : " ";
  }
  return text;
}

}  // namespace gyre
