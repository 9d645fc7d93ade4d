#include "gyre/tokenizers/tokenizer_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/text.h"
#include "gyre/tokenizers/json/token_files.h"
#include "gyre/tokenizers/json/tokenizer_json.h"
#include "gyre/tokenizers/json/vocabularies.h"
#include "gyre/tokenizers/sentencepiece/sentencepiece_model.h"
#include "gyre/tokenizers/sentencepiece/unigram_json.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

std::string read_tokens(const fs::path& path) {
  return read_file(path, kMostOfTokenizer);
}

std::string read_if_there(const fs::path& path) {
  return is_there(path) ? read_tokens(path) : "";
}

// The form that converts a file of this name; null if the file is a tokenizer by itself.
const TokenizerForm* converted_form(const fs::path& name) {
  for (const TokenizerForm& form : tokenizer_forms()) {
    if (*form.taken_for != '\0' && std::ranges::find(form.files, name) != form.files.end()) return &form;
  }
  return nullptr;
}

TokenFiles files_beside(const fs::path& directory) {
  return {directory.string(), read_if_there(directory / kTokenizerConfigFile),
          read_if_there(directory / "added_tokens.json"), read_if_there(directory / "special_tokens_map.json")};
}

// Of a form's files, which lie in `directory`.
std::string converted(const fs::path& directory, const TokenizerForm& form, const std::string& config) {
  const fs::path first = directory / form.files.front();
  if (form.files.size() == 1) return json_of_bert(read_tokens(first), config, first.string());
  return json_of_gpt2(read_tokens(first), read_tokens(directory / form.files.back()), config, first.string());
}

// Nothing can be added to a sentencepiece model.
void check_pieces(const NamedTokens& named, const std::string& content, const std::string& origin) {
  if (named.added.empty() && named.special.empty()) return;
  const auto model = SentencePieceModel::parse(content, origin);
  const auto check = [&](const std::string& text, const std::function<bool(int32_t)>& is_right) {
    const auto piece = model.find(text);
    if (piece && is_right(*piece)) return;
    throw InputError(
        fmt::format("{}: has no piece '{}' at the number that the files beside it give it; save the tokenizer as {}",
                    origin, printable(text), kTokenizerJsonFile));
  };
  for (const auto& token : named.added)
    check(token.at("content"), [&](int32_t piece) { return token.at("id") == piece; });
  for (const std::string& text : named.special) check(text, [](int32_t) { return true; });
}

// Unless its name says more, the kind follows from the content: a tokenizer.json begins with '{', a sentencepiece model
// does not.
TokenizerModel model_of_file(const fs::path& path) {
  const auto name = path.filename();
  const TokenizerForm* const form = converted_form(name);
  TokenFiles files;
  if (form != nullptr || name == kTokenizerJsonFile || name == kTokenizerModelFile) {
    files = files_beside(path.parent_path());
  }
  const NamedTokens named = named_tokens(files);
  TokenizerModel model;
  model.content = form != nullptr ? converted(path.parent_path(), *form, files.config) : read_tokens(path);
  model.config = with_end(files.config, named.end);
  const size_t first = model.content.find_first_not_of(" \t\r\n");
  model.kind = first != std::string::npos && model.content[first] == '{' ? "json" : "sentencepiece";
  if (model.kind == "json") {
    model.content = with_added_tokens(std::move(model.content), files, named);
  } else {
    check_pieces(named, model.content, path.string());
  }
  return model;
}

bool has_form(const fs::path& directory, const TokenizerForm& form) {
  return std::ranges::all_of(form.files, [&](const char* name) { return is_there(directory / name); });
}

TokenizerModel model_of_directory(const fs::path& directory) {
  if (const TokenizerForm* const form = tokenizer_form_in(directory)) {
    return model_of_file(directory / form->files.front());
  }
  throw InputError(fmt::format(
      "{}: has no tokenizer; looked for {}, {}, vocab.json with merges.txt, encoder.json with vocab.bpe, and vocab.txt",
      directory.string(), kTokenizerJsonFile, kTokenizerModelFile));
}

// Whether a directory's tokenizer.json was made from the sentencepiece model beside it, and says nothing more: gyre
// does not read its model type, Unigram.
bool is_made_from_model(const fs::path& directory) {
  const fs::path model = directory / kTokenizerModelFile;
  if (!is_there(model)) return false;
  try {
    return is_unigram_of(read_tokens(directory / kTokenizerJsonFile),
                         SentencePieceModel::parse(read_tokens(model), model.string()));
  } catch (const InputError&) {  // a damaged one made nothing
    return false;
  }
}

}  // namespace

const char* TokenizerModel::file_of(const std::string& kind) {
  if (kind == "byte") return "";
  if (kind == "bpe" || kind == "sentencepiece") return kTokenizerModelFile;
  if (kind == "json") return kTokenizerJsonFile;
  return nullptr;
}

const std::vector<TokenizerForm>& tokenizer_forms() {
  static const std::vector<TokenizerForm> kForms = {{{kTokenizerJsonFile}},
                                                    {{kTokenizerModelFile}},
                                                    {{"vocab.json", "merges.txt"}, "gpt2"},
                                                    {{"encoder.json", "vocab.bpe"}, "gpt2"},
                                                    {{"vocab.txt"}, "bert"}};
  return kForms;
}

const TokenizerForm* tokenizer_form_in(const fs::path& directory) {
  const auto& forms = tokenizer_forms();
  const auto has = [&](const TokenizerForm& form) { return has_form(directory, form); };
  auto found = std::ranges::find_if(forms, has);
  if (found == forms.begin() && is_made_from_model(directory)) ++found;
  return found == forms.end() ? nullptr : &*found;
}

std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerModel& model, const std::string& origin) {
  if (model.kind == "byte") return make_byte_tokenizer();
  const std::string end = model.end_of_document.empty() ? end_of(model.config, origin) : model.end_of_document;
  if (model.kind == "bpe" || model.kind == "sentencepiece") {
    return parse_sentencepiece_tokenizer(model.content, origin, end);
  }
  if (model.kind == "json") return parse_tokenizer_json(model.content, origin, end);
  throw InputError(fmt::format("{}: the tokenizer '{}' is unknown to this gyre", origin, model.kind));
}

TokenizerModel read_tokenizer(const fs::path& path, const std::string& end_of_document) {
  std::error_code ignored;
  TokenizerModel model = fs::is_directory(path, ignored) ? model_of_directory(path) : model_of_file(path);
  model.end_of_document = end_of_document;
  return model;
}

}  // namespace gyre
