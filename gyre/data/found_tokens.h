// Finds token files of other programs at a path, and recognises their format by their first bytes, names, or files
// beside them.
//   llm.c      a header, then tokens (token_file.h); often in shards, such as fineweb_train_000001.bin
//   nanoGPT    16-bit tokens and nothing else; train.bin and val.bin
//   Megatron   DATA.bin with DATA.idx beside it (megatron_index.h)
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "gyre/data/token_file.h"

namespace gyre {

struct FoundTokens {
  std::string format;               // for messages
  std::vector<TokenFile> train;     // sorted by name; a single file is always one to train on
  std::vector<TokenFile> val;       // those of several files whose names have the word val, valid or validation
  std::filesystem::path directory;  // the directory of the files
};

// `path`: a directory, a file, a pattern (*, ?, [...]) of files, or Megatron's prefix (DATA). If some names in a
// directory or pattern say train or val, all must. Throws InputError if nothing is found, a file has none of these
// formats, formats differ, or a file is damaged.
FoundTokens find_tokens(const std::string& path);

}  // namespace gyre
