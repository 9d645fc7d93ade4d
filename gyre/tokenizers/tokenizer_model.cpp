#include "gyre/tokenizers/tokenizer_model.h"

#include <fmt/format.h>

#include "gyre/core/error.h"
#include "gyre/core/files.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

TokenizerModel read_file_of_kind(const fs::path& path) {
  TokenizerModel model;
  model.kind = "sentencepiece";
  model.content = read_file(path);
  return model;
}

TokenizerModel read_directory(const fs::path& directory) {
  if (!is_there(directory / kTokenizerModelFile)) {
    throw InputError(
        fmt::format("{}: has no tokenizer; a {} is what is looked for", directory.string(), kTokenizerModelFile));
  }
  TokenizerModel model = read_file_of_kind(directory / kTokenizerModelFile);
  if (is_there(directory / kTokenizerConfigFile)) model.config = read_file(directory / kTokenizerConfigFile);
  return model;
}

}  // namespace

const char* TokenizerModel::file_of(const std::string& kind) {
  if (kind == "byte") return "";
  if (kind == "bpe" || kind == "sentencepiece") return kTokenizerModelFile;
  return nullptr;
}

std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerModel& model, const std::string& origin) {
  if (model.kind == "byte") return make_byte_tokenizer();
  if (model.kind == "bpe" || model.kind == "sentencepiece") {
    return parse_sentencepiece_tokenizer(model.content, origin, model.end_of_document);
  }
  throw InputError(fmt::format("{}: the tokenizer '{}' is unknown to this gyre", origin, model.kind));
}

TokenizerModel read_tokenizer(const fs::path& path, const std::string& end_of_document) {
  std::error_code none;
  TokenizerModel model = fs::is_directory(path, none) ? read_directory(path) : read_file_of_kind(path);
  model.end_of_document = end_of_document;
  return model;
}

}  // namespace gyre
