#include "gyre/data/dataset.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/json_fields.h"

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

DatasetMeta DatasetMeta::parse(std::string_view text, const std::string& origin) {
  const auto json = parse_json(text);
  if (!json) throw InputError(fmt::format("{}: not JSON; run gyre prepare again", origin));
  JsonFields fields(*json, fmt::format("{}: not a meta.json of gyre prepare; run it again", origin));
  if (fields.need<std::string>("format") != "gyre-tokens" || fields.need<int64_t>("version") != 1) {
    fields.fail("its format is not version 1 of gyre-tokens");
  }
  DatasetMeta meta;
  fields.need("tokenizer", meta.tokenizer);
  fields.need("vocabulary", meta.vocabulary);
  fields.need("train_tokens", meta.train_tokens);
  fields.need("val_tokens", meta.val_tokens);
  fields.need("documents", meta.documents);
  fields.need("text_bytes", meta.text_bytes);
  fields.need("train_checksum", meta.train_checksum);
  fields.need("val_checksum", meta.val_checksum);
  return meta;
}

DatasetMeta DatasetMeta::load(const std::filesystem::path& directory) {
  const auto path = directory / "meta.json";
  if (!std::filesystem::exists(path)) {
    throw InputError(fmt::format("{}: no prepared text is here (no meta.json); make it with gyre prepare TEXT --out {}",
                                 directory.string(), directory.string()));
  }
  return parse(read_file(path), path.string());
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
