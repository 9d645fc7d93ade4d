// The files of a model of transformers, and which tensors each has.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gyre/checkpoint/format/safetensors_header.h"
#include "gyre/tokenizers/special_token_numbers.h"

namespace gyre {

// One file of tensors. No tensor is in two files of a model.
struct TensorFile {
  std::filesystem::path path;
  std::vector<TensorEntry> tensors;
};

// Whether a regular file is at `path`. Throws InputError if something else is: reading a pipe would wait.
bool has_file(const std::filesystem::path& path);

// The files of a directory: model.safetensors, or those that model.safetensors.index.json names. Reads only their
// headers. Throws InputError if there are none, if one is missing or damaged, or if the index and the files disagree.
std::vector<TensorFile> model_files(const std::filesystem::path& directory);

// The names of the files that transformers has beside tensors and config.json: the tokenizer's, and the settings for
// generation.
std::vector<std::string> side_files();
// The numbers of the special tokens of the directory's tokenizer; empty if it has none. Throws InputError if it cannot
// be read.
TokenNumbers special_tokens(const std::filesystem::path& directory);
inline constexpr const char* kGenerationFile = "generation_config.json";  // settings for generation

}  // namespace gyre
