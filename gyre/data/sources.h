// The data that a run trains and validates on: one source of tokens, or a weighted mixture of several. A source is a
// directory that gyre prepare made, or token files of other programs (found_tokens.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "gyre/data/dataset.h"
#include "gyre/data/settings/data_settings.h"
#include "gyre/data/token_sequence.h"
#include "gyre/tokenizers/special_token_numbers.h"

namespace gyre {

// The part of the data that a checksum in a DataIdentity belongs to. A prepared directory's entries have its files'
// names; those of other sources are train/FILE and val/FILE, in a mixture SOURCE/train/FILE.
enum class DataPart { Tokenizer, Train, Val };
// The part that a name in a DataIdentity belongs to; empty for files beside a tokenizer that do not affect tokens.
std::optional<DataPart> part_of(const std::string& name);

// Whether `path` is a directory that gyre prepare made, which has its own tokenizer and vocabulary.
bool is_prepared(const std::string& path);

class Dataset {
 public:
  // Reads headers only. `if_unstated` is the vocabulary of token files if neither they nor the settings state one; 0:
  // unknown. Throws InputError if nothing is there, files are not token files or do not belong together, sources differ
  // in tokenizer or vocabulary, or the vocabulary is unknown.
  static Dataset open(const DataSettings& settings, int64_t if_unstated = 0);
  // The same for `settings.tokens` alone, to validate on: of token files of other programs those for validation, if
  // some are, else all of them.
  static Dataset open_to_validate(const DataSettings& settings, int64_t if_unstated = 0);

  int64_t vocabulary() const { return vocabulary_; }
  // Whether the vocabulary is that of a directory that gyre prepare made, or of [data] tokenizer.
  bool has_own_vocabulary() const { return has_own_vocabulary_; }
  int64_t train_tokens() const { return tokens_in(train_); }
  int64_t val_tokens() const { return tokens_in(val_); }
  // Of all files.
  uint64_t bytes() const;
  // Files that are still to be verified are read until this asks for the end: then Stopped (core/stopped.h) is thrown.
  void heed(std::stop_token stop) { stop_ = std::move(stop); }
  // Whether validation tokens are a share of the training files' ([data] val_fraction).
  bool cuts_validation() const { return cuts_validation_; }
  // The numbers of the tokenizer's special tokens, as its tokenizer.json has them; empty if it has no such form.
  TokenNumbers special_tokens() const;
  // Where the tokens come from, for messages.
  const std::string& description() const { return description_; }

  // Sources in the order of their names. The first call reads the whole files. Throws InputError if one does not match
  // its meta.json, or has a token outside the vocabulary.
  const std::vector<WeightedTokens>& train() const { return verified(train_); }
  const std::vector<WeightedTokens>& val() const { return verified(val_); }

  // The checksums of `parts`. Reads whole files if no meta.json has their checksums.
  DataIdentity identity(const std::vector<DataPart>& parts) const;
  DataIdentity identity() const { return identity({DataPart::Tokenizer, DataPart::Train, DataPart::Val}); }
  // Throws InputError naming the first file of `parts` that differs between the data a run began with and this data. A
  // tokenizer also matches a run that has it converted to tokenizer.json.
  void check_identity(const DataIdentity& run, const std::vector<DataPart>& parts) const;
  // Throws RunError if the content of a file has changed since it was verified: it was edited in place.
  void check_unchanged() const;

  // Writes the tokenizer, if there is one, and a meta.json that identifies the data.
  void write_tokenizer(const std::filesystem::path& directory, FileSystem& files = system_files()) const;

 private:
  struct File {
    std::shared_ptr<const TokenFile> tokens;
    std::string expected;                                   // its checksum from a meta.json, if there is one
    mutable std::optional<InputFile::Stamp> verified = {};  // the stamp when verified
    mutable std::string checksum = {};                      // computed then
  };
  struct Named {  // a file and its name in an identity
    std::string name;
    size_t file;
  };
  struct Split {
    std::vector<WeightedTokens> sources;
    std::vector<Named> files;
  };
  struct Opener;

  static int64_t tokens_in(const Split& split);
  const std::vector<WeightedTokens>& verified(const Split& split) const;
  void verify(const File& file) const;
  std::string shown(const std::string& name) const;
  std::optional<std::string> tokenizer_as_json() const;       // empty: there is none, or it cannot be converted
  bool has_as_json(const std::string& tokenizer_json) const;  // whether the tokenizer, converted, has this checksum

  std::stop_token stop_;
  int64_t vocabulary_ = 0;
  bool has_own_vocabulary_ = false;
  std::string description_;
  std::vector<File> files_;
  Split train_, val_;
  // Where the tokenizer comes from: a prepared directory; or, for token files of other programs, the settings.
  std::optional<std::filesystem::path> prepared_;
  std::optional<TokenizerModel> tokenizer_;
  DatasetMeta meta_;
  bool cuts_validation_ = false;
  bool is_prepared_ = false;  // prepared_ is the only source of tokens
};

}  // namespace gyre
