// What a run trains and validates on: one source of tokens, or a weighted mixture of several. A source is a directory
// that gyre prepare made, or token files of other programs (found_tokens.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gyre/data/dataset.h"
#include "gyre/data/settings/data_settings.h"
#include "gyre/data/token_sequence.h"

namespace gyre {

// What a checksum in a DataIdentity is of. The names of a prepared directory are its files'; those of any other source
// are train/FILE and val/FILE, in a mixture SOURCE/train/FILE.
enum class DataPart { Tokenizer, Train, Val };
// Nothing for what lies beside a tokenizer and decides no token.
std::optional<DataPart> part_of(const std::string& name);

class Dataset {
 public:
  // Looks at headers. InputError: nothing there, not token files, files that do not fit each other, several
  // tokenizers or vocabularies, a vocabulary that nothing says.
  static Dataset open(const DataSettings& settings);

  int64_t vocabulary() const { return vocabulary_; }
  int64_t train_tokens() const { return tokens_in(train_); }
  int64_t val_tokens() const { return tokens_in(val_); }
  // Where tokens are from, for people.
  const std::string& description() const { return description_; }

  // In the order of their names. The first call reads the whole files. InputError when one is not what its meta.json
  // says, or has a token outside the vocabulary.
  const std::vector<WeightedTokens>& train() const { return verified(train_); }
  const std::vector<WeightedTokens>& val() const { return verified(val_); }

  // The checksums of `parts`. Reads the whole files where no meta.json has them.
  DataIdentity identity(const std::vector<DataPart>& parts) const;
  DataIdentity identity() const { return identity({DataPart::Tokenizer, DataPart::Train, DataPart::Val}); }
  // InputError naming the first file of `parts` that differs between what a run was begun with and what is here now. A
  // tokenizer is the same as its own form as a tokenizer.json.
  void check_identity(const DataIdentity& run, const std::vector<DataPart>& parts) const;
  // RunError when one of the files has another content than when it was first asked for: it was edited in place.
  void check_unchanged() const;

  // Writes the tokenizer, if there is one, and a meta.json that says what the data is.
  void write_tokenizer(const std::filesystem::path& directory, FileSystem& files = system_files()) const;

 private:
  struct File {
    std::shared_ptr<const TokenFile> tokens;
    std::string expected;                                   // its checksum, where a meta.json says it
    mutable std::optional<InputFile::Stamp> verified = {};  // as it was then
    mutable std::string checksum = {};                      // since then
  };
  struct Named {  // a file in an identity
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
  bool has_as_json(const std::string& tokenizer_json) const;  // its checksum

  int64_t vocabulary_ = 0;
  std::string description_;
  std::vector<File> files_;
  Split train_, val_;
  // Of the prepared directory that the tokenizer is from; or, of others' token files, the tokenizer that settings name.
  std::optional<std::filesystem::path> prepared_;
  std::optional<TokenizerModel> tokenizer_;
  DatasetMeta meta_;
  bool is_prepared_ = false;  // that directory is all there is
};

}  // namespace gyre
