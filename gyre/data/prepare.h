// gyre prepare: turns UTF-8 text, plain or in lines of JSON, into token files, streaming.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "gyre/core/file_system.h"

namespace gyre {

// How far a pass over the texts has come, in bytes of their files.
struct PrepareProgress {
  const char* doing = "";
  int64_t done = 0;
  int64_t total = 0;  // 0: not known
};

inline constexpr int64_t kLargestVocabulary = 1'000'000;  // for bpe
inline constexpr int64_t kFewestOfAShard = 1000;          // tokens
inline constexpr int kMostPrepareThreads = 1024;

struct PrepareOptions {
  std::vector<std::string> texts;  // paths; "-" is standard input
  std::string format = "auto";     // text | jsonl; auto: by the file's name
  std::string field = "text";      // for jsonl: the key of the text
  std::string separator;           // for plain text: what separates documents; empty: a file is a document
  std::filesystem::path out;
  // "byte", "bpe" (trained on the texts), or the path of a user's own tokenizer (read_tokenizer).
  std::string tokenizer = "byte";
  std::string end_of_document;     // the text of the token that ends documents; empty: the tokenizer's default
  int64_t vocabulary_size = 8192;  // for bpe
  double val_fraction = 0.1;
  int64_t shard_tokens = 1'000'000'000;  // of a token file, at most; more go to a further file
  int64_t seed = 1;                      // selects the documents for validation
  int threads = 0;                       // 0: one per core. The tokens do not depend on it
  bool overwrite = false;                // replace prepared text that `out` already has
  int input_descriptor = 0;              // what "-" stands for
  std::stop_token stop = {};             // a stopped call removes what it wrote
  std::function<void(const PrepareProgress&)> progress = {};
  FileSystem* files = &system_files();
};

struct PrepareResult {
  int64_t vocabulary = 0;
  std::string end_of_document;  // the token, as printed for people
  int64_t documents = 0;
  int64_t text_bytes = 0;
  int64_t train_tokens = 0;
  int64_t val_tokens = 0;
};

// Writes the documents of all texts one after the other, each followed by the end-of-document token. If there may be
// many documents (jsonl, a separator, or at least 1 / val_fraction files), one in 1 / val_fraction goes to validation
// as a whole: the last of the first 1 / val_fraction, later ones drawn by seed and number. With fewer documents than 1
// / val_fraction, the end of all tokens goes there instead. Otherwise the last val_fraction of each document's tokens
// does. Everything is built in "<out>.preparing", which is renamed to `out` when complete, so that `out` is always
// whole, old or new. Memory use does not grow with the texts: bpe trains on a sample spread over them. Throws
// InputError for texts that cannot be read, are empty, or are not UTF-8 or JSON; for options out of range; and if `out`
// has prepared text (without `overwrite`) or other files. Throws Stopped (core/stopped.h).
PrepareResult prepare(const PrepareOptions& options);

}  // namespace gyre
