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

// Identifies data by the XXH3-128 of each of its files, by name. A run records the identity of the data it began with.
using DataIdentity = std::map<std::string, std::string>;

struct DatasetMeta {
  std::string tokenizer;        // TokenizerModel::kind
  std::string end_of_document;  // the token's text; empty: the tokenizer's default
  int64_t vocabulary = 0;
  int64_t train_tokens = 0;
  int64_t val_tokens = 0;
  int64_t documents = 0;
  int64_t text_bytes = 0;
  DataIdentity checksums;
  bool operator==(const DatasetMeta&) const = default;

  std::string to_json() const;
  // The inverse of to_json(); `origin` is what errors call the text, and `remedy` what they say to do.
  static DatasetMeta parse(std::string_view json, const std::string& origin,
                           const std::string& remedy = "run gyre prepare again, with --overwrite");
  // Throws InputError naming the file and what is wrong with it.
  static DatasetMeta load(const std::filesystem::path& directory);
};

inline constexpr const char* kTrainFile = "train.bin";
inline constexpr const char* kValFile = "val.bin";
inline constexpr const char* kMetaFile = "meta.json";
inline constexpr const char* kNoTokenizer = "none";  // DatasetMeta::tokenizer if the tokens come without one
// The tokenizers' files that belong to a DataIdentity.
std::vector<std::string> tokenizer_files();

// Whether the directory is the copy of its tokenizer that a run keeps, which gyre prepare does not make.
bool is_tokenizer_of_run(const std::filesystem::path& directory);
// Reads meta.json and the tokenizer's files, if it has any, from a directory. Throws InputError if they do not match,
// or there is no tokenizer.
TokenizerModel load_tokenizer_model(const std::filesystem::path& directory);
// Makes the tokenizer; null for kNoTokenizer.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& directory);
// Sets the tokenizer's kind, its end-of-document token and its files' checksums in `meta`.
void describe_tokenizer(const TokenizerModel& model, DatasetMeta& meta);
// The same, and writes the tokenizer's files to an existing directory.
void write_tokenizer(const TokenizerModel& model, const std::filesystem::path& directory, DatasetMeta& meta,
                     FileSystem& files = system_files());
// Writes a tokenizer and a meta.json without token files to the existing directory `to`, for a run that starts from
// imported weights.
void import_tokenizer(const TokenizerModel& model, int64_t vocabulary, const std::filesystem::path& to,
                      FileSystem& files = system_files());
// Copies meta.json and the tokenizer's files, verified, to an existing directory.
void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& to,
                    FileSystem& files = system_files());

}  // namespace gyre
