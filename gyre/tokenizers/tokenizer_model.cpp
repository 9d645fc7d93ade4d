#include "gyre/tokenizers/tokenizer_model.h"

#include <fmt/format.h>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/tokenizers/json/tokenizer_json.h"
#include "gyre/tokenizers/json/vocabularies.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

std::string read_if_there(const fs::path& path) {
  return is_there(path) ? read_file(path) : "";
}

// The kind follows from the content: a tokenizer.json begins with '{', a sentencepiece model does not.
TokenizerModel model_of_file(const fs::path& path) {
  TokenizerModel model;
  model.content = read_file(path);
  const size_t first = model.content.find_first_not_of(" \t\r\n");
  model.kind = first != std::string::npos && model.content[first] == '{' ? "json" : "sentencepiece";
  const auto name = path.filename();
  if (name == kTokenizerJsonFile || name == kTokenizerModelFile) {
    model.config = read_if_there(path.parent_path() / kTokenizerConfigFile);
  }
  return model;
}

TokenizerModel model_of_directory(const fs::path& directory) {
  for (const char* name : {kTokenizerJsonFile, kTokenizerModelFile}) {
    if (is_there(directory / name)) return model_of_file(directory / name);
  }
  TokenizerModel model;
  model.kind = "json";
  model.config = read_if_there(directory / kTokenizerConfigFile);
  static const std::pair<const char*, const char*> kPairs[] = {{"vocab.json", "merges.txt"},
                                                               {"encoder.json", "vocab.bpe"}};
  for (const auto& [vocabulary, merges] : kPairs) {
    if (!is_there(directory / vocabulary) || !is_there(directory / merges)) continue;
    model.content = json_of_gpt2(read_file(directory / vocabulary), read_file(directory / merges), model.config,
                                 (directory / vocabulary).string());
    return model;
  }
  if (is_there(directory / "vocab.txt")) {
    model.content = json_of_bert(read_file(directory / "vocab.txt"), model.config, (directory / "vocab.txt").string());
    return model;
  }
  throw InputError(fmt::format(
      "{}: has no tokenizer; looked for {}, {}, vocab.json with merges.txt, encoder.json with vocab.bpe, and vocab.txt",
      directory.string(), kTokenizerJsonFile, kTokenizerModelFile));
}

}  // namespace

const char* TokenizerModel::file_of(const std::string& kind) {
  if (kind == "byte") return "";
  if (kind == "bpe" || kind == "sentencepiece") return kTokenizerModelFile;
  if (kind == "json") return kTokenizerJsonFile;
  return nullptr;
}

std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerModel& model, const std::string& origin) {
  if (model.kind == "byte") return make_byte_tokenizer();
  if (model.kind == "bpe" || model.kind == "sentencepiece") {
    return parse_sentencepiece_tokenizer(model.content, origin, model.end_of_document);
  }
  if (model.kind == "json") return parse_tokenizer_json(model.content, model.config, origin, model.end_of_document);
  throw InputError(fmt::format("{}: the tokenizer '{}' is unknown to this gyre", origin, model.kind));
}

TokenizerModel read_tokenizer(const fs::path& path, const std::string& end_of_document) {
  std::error_code ignored;
  TokenizerModel model = fs::is_directory(path, ignored) ? model_of_directory(path) : model_of_file(path);
  model.end_of_document = end_of_document;
  return model;
}

}  // namespace gyre
