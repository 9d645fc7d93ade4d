// gyre prepare: UTF-8 text to token files, streamed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "gyre/core/file_system.h"

namespace gyre {

struct PrepareOptions {
  std::vector<std::string> texts;  // paths; "-" is standard input
  std::filesystem::path out;
  std::string tokenizer = "byte";
  int64_t vocabulary_size = 8192;  // of bpe
  double val_fraction = 0.1;
  bool overwrite = false;     // take the place of prepared text that is in `out` already
  int input_descriptor = 0;   // what "-" reads
  std::stop_token stop = {};  // what was written is removed again
  FileSystem* files = &system_files();
};

struct PrepareResult {
  int64_t vocabulary = 0;
  int64_t documents = 0;
  int64_t text_bytes = 0;
  int64_t train_tokens = 0;
  int64_t val_tokens = 0;
};

// Every text is a document. The last val_fraction of its tokens, by position, go to validation; the end-of-document
// token follows in the split where the document ends. All is built in "<out>.preparing" and takes the name `out` when
// it is complete, so that `out` is whole at every moment, the old or the new. Memory is bounded whatever the length of
// the texts: bpe trains on a sample spread over them. Errors: InputError (what cannot be read, is not UTF-8, is empty;
// options out of range; an `out` that has prepared text, without `overwrite`, or files that are not ours); RunError
// when stopped.
PrepareResult prepare(const PrepareOptions& options);

}  // namespace gyre
