// What gyre prepare writes: documents' tokens, divided between training and validation.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "gyre/core/file_system.h"
#include "gyre/data/token_file.h"

namespace gyre {

class TokenSplits {
 public:
  struct Options {
    double val_fraction = 0.1;
    bool by_documents = false;  // else the end of each document is kept for validation
    int64_t seed = 1;           // which documents
  };
  TokenSplits(const std::filesystem::path& directory, int64_t vocabulary, const Options& options, FileSystem& files);

  // Goes on with a document, or begins one.
  void append(std::span<const int32_t> tokens) { current_->append(tokens); }
  // `end` follows it, in the split where it ends.
  void end_document(int32_t end);
  int64_t documents() const { return documents_; }

  // No document is open. Where whole documents are kept and there were too few for one of them, the end of all goes to
  // validation.
  void finish();
  int64_t train_tokens() const { return train_.size(); }
  int64_t val_tokens() const { return val_.size(); }
  // After finish(): sync, and return the file's checksum.
  std::string close_train() { return train_.finish(); }
  std::string close_val() { return val_.finish(); }

 private:
  void begin_document();
  // Moves the last of the training tokens since `begin`; whether there were any.
  bool keep_end(int64_t begin);

  Options options_;
  TokenFileWriter train_, val_;
  TokenFileWriter* current_ = nullptr;  // the split of the document at hand
  int64_t documents_ = 0;
  int64_t beginning_ = 0;  // of the document at hand, in train_
  // One document of each stretch of 1 / val_fraction is kept.
  int64_t stretch_ = 0, stretch_end_ = 0, kept_ = -1;
};

}  // namespace gyre
