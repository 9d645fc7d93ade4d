// A split of prepared text as token files: train.bin and, if it has more tokens than a file is to have,
// train_000002.bin and so on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gyre/core/file_system.h"
#include "gyre/data/dataset.h"
#include "gyre/data/token_file.h"

namespace gyre {

// Whether `name` is `first` ("train.bin") or a further file of it.
bool is_shard_of(const std::string& name, const std::string& first);
// The names in the identity that are, in the order of their tokens.
std::vector<std::string> shards_of(const std::string& first, const DataIdentity& files);

// Streams tokens to the files. Without finish() the destructor removes them.
class TokenShards {
 public:
  // most: tokens of a file, at most; up to TokenFileWriter::kMostTokens.
  TokenShards(const std::filesystem::path& directory, std::string first, int64_t vocabulary, int64_t most,
              FileSystem& files);
  void append(std::span<const int32_t> tokens);
  int64_t size() const;
  // Moves the last `count` tokens to the end of `other`.
  void move_tail(int64_t count, TokenShards& other);
  // Completes the files, and returns their checksums by name.
  DataIdentity finish();

 private:
  std::string name_of(size_t shard) const;
  void add_file();

  std::filesystem::path directory_;
  std::string first_;
  int64_t vocabulary_, most_;
  FileSystem& files_;
  std::vector<std::unique_ptr<TokenFileWriter>> shards_;  // all are full but the last
};

}  // namespace gyre
