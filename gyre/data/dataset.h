// A directory that gyre prepare made: train.bin, val.bin, meta.json and the tokenizer's files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/data/token_file.h"
#include "gyre/tokenizers/tokenizer_model.h"

namespace gyre {

// What data is: the XXH3-128 of each of its files by name. A run keeps this of the data it was begun with.
using DataIdentity = std::map<std::string, std::string>;

struct DatasetMeta {
  std::string tokenizer;        // TokenizerModel::kind
  std::string end_of_document;  // the token's text; empty: the tokenizer's own
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
// The files that a tokenizer may have, for check_identity: which of them there are is part of what data is.
std::vector<std::string> tokenizer_files();
// Both, a tokenizer's and the tokens'.
std::vector<std::string> data_files();

// From a directory with meta.json and the tokenizer's file, if it has one. InputError when they do not belong together.
TokenizerModel load_tokenizer_model(const std::filesystem::path& directory);
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& directory);
// Writes the tokenizer's files to an existing directory, and their checksums, and what it is called, to `meta`.
void write_tokenizer(const TokenizerModel& model, const std::filesystem::path& directory, DatasetMeta& meta,
                     FileSystem& files = system_files());
// A directory with a tokenizer and no tokens, for a run that begins with somebody's weights: `to` exists.
void import_tokenizer(const TokenizerModel& model, const std::filesystem::path& to, FileSystem& files = system_files());
// Copies meta.json and the tokenizer's files, verified, to an existing directory.
void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& to,
                    FileSystem& files = system_files());

}  // namespace gyre
