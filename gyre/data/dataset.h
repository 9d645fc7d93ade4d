// A directory that gyre prepare made: train.bin, val.bin, meta.json and the tokenizer's model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "gyre/data/token_file.h"
#include "gyre/data/tokenizer.h"

namespace gyre {

struct DatasetMeta {
  std::string tokenizer;  // "byte" or "bpe"
  int64_t vocabulary = 0;
  int64_t train_tokens = 0;
  int64_t val_tokens = 0;
  int64_t documents = 0;
  int64_t text_bytes = 0;
  std::string train_checksum, val_checksum;  // XXH3-128
  bool operator==(const DatasetMeta&) const = default;

  std::string to_json() const;
  // The inverse; `origin` is what errors call it.
  static DatasetMeta parse(std::string_view json, const std::string& origin);
  // InputError naming the file and what is wrong with it.
  static DatasetMeta load(const std::filesystem::path& directory);
};

class Dataset {
 public:
  // InputError: no such directory, not made by gyre prepare, files that do not fit each other.
  static Dataset open(const std::filesystem::path& directory);
  int64_t vocabulary() const { return meta_.vocabulary; }
  const TokenFile& train() const { return train_; }
  const TokenFile& val() const { return val_; }

 private:
  Dataset(DatasetMeta meta, TokenFile train, TokenFile val)
      : meta_(std::move(meta)), train_(std::move(train)), val_(std::move(val)) {}
  DatasetMeta meta_;
  TokenFile train_, val_;
};

// From a directory with meta.json and, for bpe, tokenizer.model.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& directory);

}  // namespace gyre
