#include "gyre/data/dataset.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "gyre/core/error.h"
#include "gyre/core/files.h"

namespace gyre {
namespace {

using Json = nlohmann::ordered_json;

void check_count(const TokenFile& file, int64_t expected) {
  if (file.size() == expected) return;
  throw InputError(fmt::format("{}: has {} tokens, meta.json says {}; run gyre prepare again", file.path().string(),
                               file.size(), expected));
}

}  // namespace

std::string DatasetMeta::to_json() const {
  const Json json = {{"format", "gyre-tokens"},          {"version", 1},
                     {"tokenizer", tokenizer},           {"vocabulary", vocabulary},
                     {"train_tokens", train_tokens},     {"val_tokens", val_tokens},
                     {"documents", documents},           {"text_bytes", text_bytes},
                     {"train_checksum", train_checksum}, {"val_checksum", val_checksum}};
  return json.dump(2) + "\n";
}

DatasetMeta DatasetMeta::load(const std::filesystem::path& directory) {
  const auto path = directory / "meta.json";
  if (!std::filesystem::exists(path)) {
    throw InputError(fmt::format("{}: no prepared text is here (no meta.json); make it with gyre prepare TEXT --out {}",
                                 directory.string(), directory.string()));
  }
  DatasetMeta meta;
  try {
    const Json json = Json::parse(read_file(path));
    if (json.at("format") != "gyre-tokens" || json.at("version") != 1) throw InputError("");
    meta.tokenizer = json.at("tokenizer").get<std::string>();
    meta.vocabulary = json.at("vocabulary").get<int64_t>();
    meta.train_tokens = json.at("train_tokens").get<int64_t>();
    meta.val_tokens = json.at("val_tokens").get<int64_t>();
    meta.documents = json.at("documents").get<int64_t>();
    meta.text_bytes = json.at("text_bytes").get<int64_t>();
    meta.train_checksum = json.at("train_checksum").get<std::string>();
    meta.val_checksum = json.at("val_checksum").get<std::string>();
  } catch (const std::exception&) {
    throw InputError(fmt::format("{}: not a meta.json of gyre prepare; run it again", path.string()));
  }
  return meta;
}

Dataset Dataset::open(const std::filesystem::path& directory) {
  DatasetMeta meta = DatasetMeta::load(directory);
  Dataset dataset(std::move(meta), TokenFile(directory / "train.bin"), TokenFile(directory / "val.bin"));
  check_count(dataset.train_, dataset.meta_.train_tokens);
  check_count(dataset.val_, dataset.meta_.val_tokens);
  return dataset;
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& directory) {
  const DatasetMeta meta = DatasetMeta::load(directory);
  std::unique_ptr<Tokenizer> tokenizer;
  if (meta.tokenizer == "byte") tokenizer = make_byte_tokenizer();
  if (meta.tokenizer == "bpe") tokenizer = load_bpe_tokenizer(directory / "tokenizer.model");
  if (!tokenizer || tokenizer->vocabulary_size() != meta.vocabulary) {
    throw InputError(fmt::format("{}: the tokenizer '{}' is unknown or has another vocabulary than {}",
                                 (directory / "meta.json").string(), meta.tokenizer, meta.vocabulary));
  }
  return tokenizer;
}

}  // namespace gyre
