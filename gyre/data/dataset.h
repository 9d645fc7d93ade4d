// A directory that gyre prepare made: train.bin, val.bin, meta.json and the tokenizer's files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/core/file_system.h"
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

inline constexpr const char* kTrainFile = "train.bin";
inline constexpr const char* kValFile = "val.bin";
inline constexpr const char* kMetaFile = "meta.json";
inline constexpr const char* kNoTokenizer = "none";  // the kind of tokens that others made
// The files that a tokenizer may have and that are part of what data is.
std::vector<std::string> tokenizer_files();

// From a directory with meta.json and the tokenizer's file, if it has one. InputError when they do not belong together,
// or there is none.
TokenizerModel load_tokenizer_model(const std::filesystem::path& directory);
// Null for kNoTokenizer.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& directory);
// Says in `meta` what the tokenizer is called and its files' checksums.
void describe_tokenizer(const TokenizerModel& model, DatasetMeta& meta);
// That, and writes its files to an existing directory.
void write_tokenizer(const TokenizerModel& model, const std::filesystem::path& directory, DatasetMeta& meta,
                     FileSystem& files = system_files());
// A directory with a tokenizer of so many tokens and no tokens, for a run that begins with somebody's weights: `to`
// exists.
void import_tokenizer(const TokenizerModel& model, int64_t vocabulary, const std::filesystem::path& to,
                      FileSystem& files = system_files());
// Copies meta.json and the tokenizer's files, verified, to an existing directory.
void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& to,
                    FileSystem& files = system_files());

}  // namespace gyre
