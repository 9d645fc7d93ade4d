// A directory that gyre prepare made: train.bin, val.bin, meta.json and the tokenizer's model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "gyre/data/token_file.h"
#include "gyre/data/tokenizer.h"

namespace gyre {

// What data is: the XXH3-128 of each of its files by name. A run keeps this of the data it was begun with.
using DataIdentity = std::map<std::string, std::string>;

struct DatasetMeta {
  std::string tokenizer;  // "byte" or "bpe"
  int64_t vocabulary = 0;
  int64_t train_tokens = 0;
  int64_t val_tokens = 0;
  int64_t documents = 0;
  int64_t text_bytes = 0;
  DataIdentity checksums;
  bool operator==(const DatasetMeta&) const = default;

  std::string to_json() const;
  // The inverse; `origin` is what errors call it.
  static DatasetMeta parse(std::string_view json, const std::string& origin);
  // InputError naming the file and what is wrong with it.
  static DatasetMeta load(const std::filesystem::path& directory);
};

class Dataset {
 public:
  // Looks at meta.json and the files' headers. InputError: no such directory, not made by gyre prepare, files that do
  // not fit each other.
  static Dataset open(const std::filesystem::path& directory);
  int64_t vocabulary() const { return meta_.vocabulary; }
  const DatasetMeta& meta() const { return meta_; }
  const std::filesystem::path& directory() const { return directory_; }
  // The first call reads the whole file. InputError when it is not what meta.json says, or has a token outside the
  // vocabulary.
  const TokenFile& train() const { return verified(train_); }
  const TokenFile& val() const { return verified(val_); }
  // RunError when one of those files has another content than when it was first asked for: it was edited in place.
  void check_unchanged() const;

 private:
  struct Split {
    TokenFile file;
    mutable std::optional<InputFile::Stamp> verified = {};  // as it was then
  };
  Dataset(std::filesystem::path directory, DatasetMeta meta, TokenFile train, TokenFile val);
  const TokenFile& verified(const Split& split) const;

  std::filesystem::path directory_;
  DatasetMeta meta_;
  Split train_, val_;
};

// InputError naming the first of `files` that differs between what a run was begun with and what is in `directory` now.
void check_identity(const DataIdentity& run, const DataIdentity& found, const std::filesystem::path& directory,
                    const std::vector<std::string>& files);

inline constexpr const char* kTrainFile = "train.bin";
inline constexpr const char* kValFile = "val.bin";
inline constexpr const char* kMetaFile = "meta.json";
inline constexpr const char* kTokenizerFile = "tokenizer.model";  // of bpe

// From a directory with meta.json and, for bpe, tokenizer.model. InputError when they do not belong together.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& directory);
// Copies meta.json and the tokenizer's model, verified, to an existing directory.
void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& to,
                    FileSystem& files = system_files());

}  // namespace gyre
