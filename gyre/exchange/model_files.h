// The files that a model of transformers is in, and where each tensor lies.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gyre/checkpoint/format/safetensors_header.h"

namespace gyre {

// One file of tensors; the files of a model have no name in common.
struct TensorFile {
  std::filesystem::path path;
  std::vector<TensorEntry> tensors;
};

// Whether a file is at `path`. InputError where something else is: a pipe would be waited for.
bool has_file(const std::filesystem::path& path);

// Of a directory: model.safetensors, or those that model.safetensors.index.json names. Looks at the beginnings of files
// alone. InputError: no such files, one that is missing or damaged, an index that says something else than the files.
std::vector<TensorFile> model_files(const std::filesystem::path& directory);

// What transformers keeps beside a model's tensors and config.json: of the tokenizer, and of how texts are generated.
std::vector<std::string> side_files();
inline constexpr const char* kGenerationFile = "generation_config.json";  // the one of the latter

}  // namespace gyre
