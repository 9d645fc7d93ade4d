#include "gyre/data/dataset.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/json_fields.h"
#include "gyre/core/text.h"

namespace gyre {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 2;

// What to do if a file of the directory is damaged or missing.
std::string remedy_in(const std::filesystem::path& directory) {
  return is_tokenizer_of_run(directory)
             ? "put back the one that the run had, from a copy or from the prepared text that it was trained on"
             : "bring it back, or run gyre prepare again, with --overwrite";
}

// The content of a tokenizer's file, checked against meta.json; empty if meta.json does not list it.
std::string verified_file(const DatasetMeta& meta, const std::filesystem::path& directory, const std::string& name) {
  if (meta.checksums.count(name) == 0) return "";
  const auto path = directory / name;
  std::string content = read_file(path, kMostOfTokenizer);
  if (text_checksum(content) != meta.checksums.at(name)) {
    throw InputError(fmt::format("{}: is not the tokenizer that meta.json beside it names (its checksum differs); {}",
                                 path.string(), remedy_in(directory)));
  }
  return content;
}

// The model's files by name.
std::map<std::string, std::string> files_of(const TokenizerModel& model) {
  std::map<std::string, std::string> files;
  if (!model.content.empty()) files[TokenizerModel::file_of(model.kind)] = model.content;
  if (!model.config.empty()) files[kTokenizerConfigFile] = model.config;
  return files;
}

}  // namespace

std::string DatasetMeta::to_json() const {
  Json json = {{"format", "gyre-tokens"}, {"version", kVersion}, {"tokenizer", tokenizer}};
  if (!end_of_document.empty()) json["end_of_document"] = end_of_document;
  json.update({{"vocabulary", vocabulary},
               {"train_tokens", train_tokens},
               {"val_tokens", val_tokens},
               {"documents", documents},
               {"text_bytes", text_bytes},
               {"checksums", checksums}});
  return json.dump(2) + "\n";
}

DatasetMeta DatasetMeta::parse(std::string_view text, const std::string& origin, const std::string& remedy) {
  const auto json = parse_json(text);
  if (!json) throw InputError(fmt::format("{}: not JSON; {}", origin, remedy));
  JsonFields fields(*json, fmt::format("{}: not a meta.json of this gyre; {}", origin, remedy));
  if (fields.need<std::string>("format") != "gyre-tokens" || fields.need<int64_t>("version") != kVersion) {
    fields.fail("its format is not version 2 of gyre-tokens");
  }
  DatasetMeta meta;
  fields.need("tokenizer", meta.tokenizer);
  fields.need("vocabulary", meta.vocabulary);
  fields.need("train_tokens", meta.train_tokens);
  fields.need("val_tokens", meta.val_tokens);
  fields.need("documents", meta.documents);
  fields.need("text_bytes", meta.text_bytes);
  fields.need("checksums", meta.checksums);
  fields.read("end_of_document", meta.end_of_document);
  const char* own = meta.tokenizer == kNoTokenizer ? "" : TokenizerModel::file_of(meta.tokenizer);
  for (const std::string& file : tokenizer_files()) {
    if (own == nullptr || (file == own) != (meta.checksums.count(file) > 0)) {
      fields.fail(fmt::format("its checksums do not suit the tokenizer '{}'", printable(meta.tokenizer)));
    }
  }
  return meta;
}

DatasetMeta DatasetMeta::load(const std::filesystem::path& directory) {
  const auto path = directory / kMetaFile;
  std::error_code ignored;
  if (std::filesystem::exists(directory, ignored) && !std::filesystem::is_directory(directory, ignored)) {
    throw InputError(fmt::format("{}: is no directory; give one that gyre prepare made", directory.string()));
  }
  if (!is_there(path) && is_tokenizer_of_run(directory)) {
    throw InputError(fmt::format("{}: is missing; {}", path.string(), remedy_in(directory)));
  }
  if (!is_there(path)) {
    throw InputError(fmt::format("{}: no prepared text is here (no meta.json); make it with gyre prepare TEXT --out {}",
                                 directory.string(), directory.string()));
  }
  return parse(read_file(path), path.string(), remedy_in(directory));
}

bool is_tokenizer_of_run(const std::filesystem::path& directory) {
  return directory.filename() == "tokenizer" && is_there(directory.parent_path() / "config.toml");
}

std::vector<std::string> tokenizer_files() {
  return {kTokenizerModelFile, kTokenizerJsonFile};
}

TokenizerModel load_tokenizer_model(const std::filesystem::path& directory) {
  const DatasetMeta meta = DatasetMeta::load(directory);
  if (meta.tokenizer == kNoTokenizer) throw InputError(fmt::format("{}: has no tokenizer", directory.string()));
  TokenizerModel model;
  model.kind = meta.tokenizer;
  model.end_of_document = meta.end_of_document;
  model.content = verified_file(meta, directory, TokenizerModel::file_of(meta.tokenizer));
  model.config = verified_file(meta, directory, kTokenizerConfigFile);
  return model;
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& directory) {
  const DatasetMeta meta = DatasetMeta::load(directory);
  if (meta.tokenizer == kNoTokenizer) return nullptr;
  auto tokenizer =
      make_tokenizer(load_tokenizer_model(directory), (directory / TokenizerModel::file_of(meta.tokenizer)).string());
  if (tokenizer->vocabulary_size() != meta.vocabulary) {
    throw InputError(fmt::format("{}: the tokenizer '{}' has another vocabulary than {}",
                                 (directory / kMetaFile).string(), meta.tokenizer, meta.vocabulary));
  }
  return tokenizer;
}

void describe_tokenizer(const TokenizerModel& model, DatasetMeta& meta) {
  meta.tokenizer = model.kind;
  meta.end_of_document = model.end_of_document;
  for (const auto& [name, content] : files_of(model)) meta.checksums[name] = text_checksum(content);
}

void write_tokenizer(const TokenizerModel& model, const std::filesystem::path& directory, DatasetMeta& meta,
                     FileSystem& files) {
  describe_tokenizer(model, meta);
  for (const auto& [name, content] : files_of(model)) write_file_atomic(directory / name, content, files);
}

void import_tokenizer(const TokenizerModel& model, int64_t vocabulary, const std::filesystem::path& to,
                      FileSystem& files) {
  DatasetMeta meta;
  meta.vocabulary = vocabulary;
  write_tokenizer(model, to, meta, files);
  write_file_atomic(to / kMetaFile, meta.to_json(), files);
}

void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& to, FileSystem& files) {
  DatasetMeta meta = DatasetMeta::load(from);
  write_tokenizer(load_tokenizer_model(from), to, meta, files);
  write_file_atomic(to / kMetaFile, meta.to_json(), files);
}

}  // namespace gyre
