#include "gyre/exchange/model_files.h"

#include <fmt/format.h>

#include "gyre/checkpoint/format/shards.h"
#include "gyre/checkpoint/safetensors.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/text.h"
#include "gyre/tokenizers/tokenizer_model.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

ShardIndex read_index(const fs::path& path) {
  try {
    return parse_shard_index(read_file(path));
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", path.string(), error.what()));
  }
}

// An index may come from anybody: its names must not lead to another directory.
void check_name(const std::string& name, const fs::path& index) {
  const bool is_plain = !name.empty() && name == printable(name);
  if (is_plain && fs::path(name).filename() == name && name != "." && name != "..") return;
  throw InputError(fmt::format("{}: '{}' is not the name of a file beside it", index.string(), printable(name)));
}

std::vector<TensorFile> indexed_files(const fs::path& directory, const fs::path& index_path) {
  const ShardIndex index = read_index(index_path);
  if (index.weight_map.empty()) {
    throw InputError(fmt::format("{}: names no tensors; is it whole?", index_path.string()));
  }
  std::map<std::string, std::set<std::string>> tensors;  // by file
  for (const auto& [tensor, file] : index.weight_map) {
    check_name(file, index_path);
    tensors[file].insert(tensor);
  }
  std::vector<TensorFile> files;
  for (auto& [name, wanted] : tensors) {
    const fs::path path = directory / name;
    if (!has_file(path)) {
      throw InputError(fmt::format("{}: is missing; {} names it", path.string(), index_path.string()));
    }
    TensorFile& file = files.emplace_back(TensorFile{path, SafetensorsFile(path).tensors()});
    for (const TensorEntry& tensor : file.tensors) {
      if (wanted.erase(tensor.name) > 0) continue;
      throw InputError(fmt::format("{}: has '{}', which {} does not name, or says is in another file", path.string(),
                                   printable(tensor.name), index_path.string()));
    }
    if (!wanted.empty()) {
      throw InputError(fmt::format("{}: lacks '{}', which {} says is in it", path.string(), printable(*wanted.begin()),
                                   index_path.string()));
    }
  }
  return files;
}

}  // namespace

bool has_file(const fs::path& path) {
  if (!is_there(path)) return false;
  if (fs::is_regular_file(path)) return true;
  throw InputError(fmt::format("{}: is not a regular file; put the model's file in its place", path.string()));
}

std::vector<TensorFile> model_files(const fs::path& directory) {
  const fs::path single = directory / shard_name(Part::Model, {});
  if (has_file(single)) return {{single, SafetensorsFile(single).tensors()}};
  const fs::path index = directory / index_name(Part::Model);
  if (has_file(index)) return indexed_files(directory, index);
  const bool pickled =
      is_there(directory / "pytorch_model.bin") || is_there(directory / "pytorch_model.bin.index.json");
  throw InputError(fmt::format("{}: has neither {} nor {}{}", directory.string(), single.filename().string(),
                               index.filename().string(),
                               pickled ? "; pytorch_model.bin is not read: save it with transformers' "
                                         "save_pretrained(safe_serialization=True)"
                                       : ""));
}

TokenNumbers special_tokens(const fs::path& directory) {
  const fs::path json = directory / kTokenizerJsonFile, words = directory / "vocab.txt";
  if (has_file(json)) {
    try {
      return special_token_numbers(read_file(json, kMostOfTokenizer));
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: {}", json.string(), error.what()));
    }
  }
  return has_file(words) ? bracketed_token_numbers(read_file(words, kMostOfTokenizer)) : TokenNumbers{};
}

std::vector<std::string> side_files() {
  return {"tokenizer.json",
          "tokenizer_config.json",
          "special_tokens_map.json",
          "added_tokens.json",
          "vocab.json",
          "merges.txt",
          "vocab.txt",
          "tokenizer.model",
          "chat_template.jinja",
          "chat_template.json",
          kGenerationFile};
}

}  // namespace gyre
