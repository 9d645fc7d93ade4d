// Writes the tokens of documents for gyre prepare, divided between training and validation.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "gyre/core/file_system.h"
#include "gyre/data/token_shards.h"

namespace gyre {

class TokenSplits {
 public:
  struct Options {
    double val_fraction = 0.1;
    bool by_documents = false;  // false: the end of each document goes to validation
    int64_t seed = 1;           // selects the documents
    int64_t shard_tokens = TokenFileWriter::kMostTokens;
  };
  TokenSplits(const std::filesystem::path& directory, int64_t vocabulary, const Options& options, FileSystem& files);

  // Appends to the current document, or begins one.
  void append(std::span<const int32_t> tokens) { current_->append(tokens); }
  // Ends the document with the token `end`, in the split where the document ends.
  void end_document(int32_t end);
  int64_t documents() const { return documents_; }

  // Call when no document is open. With by_documents and too few documents for one to be selected, moves the end of all
  // tokens to validation.
  void finish();
  int64_t train_tokens() const { return train_.size(); }
  int64_t val_tokens() const { return val_.size(); }
  // After finish(): complete the files and return their checksums.
  DataIdentity close_train() { return train_.finish(); }
  DataIdentity close_val() { return val_.finish(); }

 private:
  void begin_document();
  // Moves the last val_fraction of the training tokens from `begin` on to val_. Returns whether there were any.
  bool keep_end(int64_t begin);

  Options options_;
  TokenShards train_, val_;
  TokenShards* current_ = nullptr;  // the split of the current document
  int64_t documents_ = 0;
  int64_t beginning_ = 0;  // of the current document, in train_
  // One document of each stretch of 1 / val_fraction documents goes to validation: number kept_.
  int64_t stretch_ = 0, stretch_end_ = 0, kept_ = -1;
};

}  // namespace gyre
