// gyre prepare: UTF-8 text, plain or in lines of JSON, to token files, streamed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "gyre/core/file_system.h"

namespace gyre {

// How far a pass over the texts is, in bytes of their files.
struct PrepareProgress {
  const char* doing = "";
  int64_t done = 0;
  int64_t total = 0;  // 0: not known
};

struct PrepareOptions {
  std::vector<std::string> texts;  // paths; "-" is standard input
  std::string format = "auto";     // text | jsonl; auto: jsonl where a file's name ends so
  std::string field = "text";      // of jsonl
  std::string separator;           // between the documents of plain text; empty: a file is a document
  std::filesystem::path out;
  // "byte", "bpe" (trained on the texts), or a path: a user's own (read_tokenizer).
  std::string tokenizer = "byte";
  std::string end_of_document;     // the text of the token that ends documents; empty: the tokenizer's own
  int64_t vocabulary_size = 8192;  // of bpe
  double val_fraction = 0.1;
  int64_t seed = 1;           // which documents are kept for validation
  int threads = 0;            // 0: as many as there are cores. The tokens are the same
  bool overwrite = false;     // take the place of prepared text that is in `out` already
  int input_descriptor = 0;   // what "-" reads
  std::stop_token stop = {};  // what was written is removed again
  std::function<void(const PrepareProgress&)> progress = {};
  FileSystem* files = &system_files();
};

struct PrepareResult {
  int64_t vocabulary = 0;
  std::string end_of_document;  // the token, as it is printed
  int64_t documents = 0;
  int64_t text_bytes = 0;
  int64_t train_tokens = 0;
  int64_t val_tokens = 0;
};

// All texts' documents one after the other, each followed by the end-of-document token. Where there are many documents
// (jsonl, a separator, or at least 1 / val_fraction files) one of each 1 / val_fraction goes to validation as a whole,
// drawn by seed and number; with fewer than that the end of all. Else the last val_fraction of each document's tokens
// does. All is built in "<out>.preparing" and takes the name `out` when it is complete, so that `out` is whole at every
// moment, the old or the new. Memory is bounded whatever the length of the texts: bpe trains on a sample spread over
// them. Errors: InputError (what cannot be read, is not UTF-8 or no JSON, is empty; options out of range; an `out` that
// has prepared text, without `overwrite`, or files that are not ours); RunError when stopped.
PrepareResult prepare(const PrepareOptions& options);

}  // namespace gyre
