// Token files that users bring: found by a path, told apart by how they begin and what lies beside them.
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
  std::string format;               // in words
  std::vector<TokenFile> train;     // by name
  std::vector<TokenFile> val;       // those whose names have the word val, valid or validation
  std::filesystem::path directory;  // where they lie
};

// `path`: a directory, a file, a pattern (*, ?, [...]) of files, or Megatron's prefix (DATA). In a directory or a
// pattern, where names say train or val, all must say one of them. InputError: nothing there, a file that is none of
// these, several formats in one place, damaged.
FoundTokens find_tokens(const std::string& path);

}  // namespace gyre
