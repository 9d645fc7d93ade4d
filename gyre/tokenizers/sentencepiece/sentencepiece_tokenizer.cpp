// Tokenizers that use sentencepiece through its module, a word at a time if that gives the same tokens.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <unordered_map>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/core/utf8.h"
#include "gyre/tokenizers/sentencepiece/module.h"
#include "gyre/tokenizers/sentencepiece/sentencepiece_model.h"
#include "gyre/tokenizers/tokenizer.h"
#include "gyre/tokenizers/word_cache.h"

namespace gyre {
namespace {

// Loads the module from beside the program, from the installation that the program is in, or from a folder that was
// given to the linker: in the build, and in programs of other projects.
void* open_module() {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  std::string path = GYRE_SENTENCEPIECE_NAME;
  for (const auto& folder : {program, program / ".." / GYRE_MODULES_FOLDER}) {
    if (std::filesystem::exists(folder / GYRE_SENTENCEPIECE_NAME, ignored)) {
      path = folder / GYRE_SENTENCEPIECE_NAME;
      break;
    }
  }
  if (void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND)) return handle;
  throw InputError(
      fmt::format("{}: cannot be loaded: {}; are gyre and libsentencepiece installed?", path, ::dlerror()));
}

// Loaded once and never unloaded, because it contains the code of tokenizers.
const sentencepiece_module::Module& module() {
  static void* const handle = open_module();
  const auto* entry =
      static_cast<const sentencepiece_module::Module*>(::dlsym(handle, sentencepiece_module::kEntryName));
  if (entry == nullptr)
    throw InputError(fmt::format("{} is of another version; build gyre again", GYRE_SENTENCEPIECE_NAME));
  return *entry;
}

// The number after `words` in the library's message; 0 if there is none.
int64_t number_after(const std::string& message, const std::string& words) {
  const size_t at = message.find(words);
  int64_t number = 0;
  if (at != std::string::npos) {
    const char* begin = message.data() + at + words.size();
    std::from_chars(begin, message.data() + message.size(), number);
  }
  return number;
}

// The trainer's messages refer to its source code. Translates the ones that a user can act on. `sampled_bytes`: 0 if
// it had all text.
std::string explain_training_fault(const std::string& fault, int64_t vocabulary_size, size_t sampled_bytes) {
  const int64_t max_pieces = number_after(fault, "a value <= ");
  if (max_pieces >= kSmallestVocabulary && sampled_bytes > 0) {
    // A smaller vocabulary is learnt from less, so that this number of pieces may be too many too.
    return fmt::format(
        "--vocab-size is {}, and the {} of this text that it would be learnt from have {} pieces at "
        "most; give fewer, or more varied text",
        vocabulary_size, human_bytes(static_cast<double>(sampled_bytes)), max_pieces);
  }
  if (max_pieces >= kSmallestVocabulary) {
    return fmt::format("--vocab-size is {}, and this text has {} pieces at most; give {} or less, or more text",
                       vocabulary_size, max_pieces, max_pieces);
  }
  if (max_pieces > 0) {
    return fmt::format("this text is too short for bpe: it has {} pieces at most; give more text, or --tokenizer byte",
                       max_pieces);
  }
  const int64_t min_pieces = number_after(fault, " vs ");
  if (min_pieces > 0) {
    return fmt::format("--vocab-size is {}, and this text's characters alone are {} pieces; give {} or more",
                       vocabulary_size, min_pieces, min_pieces);
  }
  return fmt::format(
      "no vocabulary of {} pieces can be learnt from this text; try another --vocab-size, or --tokenizer "
      "byte",
      vocabulary_size);
}

bool is_plain(char c) {
  return c > ' ' && c < 0x7F;
}

// The places where a text may be split into words that are encoded one by one.
struct Words {
  bool at_blanks = false;    // before a blank between two characters of ASCII
  bool after_lines = false;  // after a line end

  static Words of(const SentencePieceModel& model) {
    // If no piece spans such a place, no segmentation of the text does.
    bool crosses_blanks = false, crosses_lines = false, has_line = false;
    for (const SentencePiece& piece : model.pieces) {
      std::string_view text = piece.text;
      if (text == "\n") {
        has_line = piece.type == SentencePiece::UserDefined;
        continue;
      }
      crosses_lines = crosses_lines || text.find('\n') != std::string_view::npos;
      if (piece.type == SentencePiece::Control || piece.type == SentencePiece::Unknown) continue;
      while (text.starts_with(kBlankSign)) text.remove_prefix(kBlankSign.size());
      crosses_blanks =
          crosses_blanks || text.find(kBlankSign) != std::string_view::npos || text.find(' ') != std::string_view::npos;
    }
    const bool bare = !model.add_dummy_prefix && !model.remove_extra_whitespaces;
    Words words;
    // A word after such a place gets its blank from the dummy prefix, or keeps its own.
    words.at_blanks = !crosses_blanks && !model.blanks_at_ends && model.escape_whitespaces &&
                      (model.add_dummy_prefix || !model.remove_extra_whitespaces);
    words.after_lines = has_line && !crosses_lines && bare && model.charsmap.empty();
    return words;
  }

  bool may_cut(std::string_view text, size_t at) const {
    if (after_lines && text[at - 1] == '\n') return true;
    return at_blanks && text[at] == ' ' && is_plain(text[at - 1]) && at + 1 < text.size() && is_plain(text[at + 1]);
  }
};

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(std::unique_ptr<sentencepiece_module::Processor> processor, const SentencePieceModel& model,
                         int32_t end)
      : processor_(std::move(processor)),
        words_(Words::of(model)),
        prefix_(model.add_dummy_prefix),
        end_(end),
        end_text_(model.pieces.at(static_cast<size_t>(end)).text) {
    for (size_t id = 0; id < model.pieces.size(); ++id) {
      const SentencePiece& piece = model.pieces[id];  // "<0xE9>"
      unsigned byte = 0;
      if (piece.type != SentencePiece::Byte || piece.text.size() != 6) continue;
      std::from_chars(piece.text.data() + 3, piece.text.data() + 5, byte, 16);
      bytes_[static_cast<int32_t>(id)] = static_cast<char>(byte);
    }
  }

  int64_t vocabulary_size() const override { return processor_->pieces(); }
  int32_t end_of_document() const override { return end_; }
  std::string end_of_document_text() const override { return end_text_; }
  void encode(std::string_view text, std::vector<int32_t>& tokens) const override { encode(text, true, tokens); }
  void encode_rest(std::string_view text, std::vector<int32_t>& tokens) const override { encode(text, false, tokens); }
  size_t cut(std::string_view text) const override {
    if (words_.after_lines && text.ends_with('\n')) return text.size();
    for (size_t at = text.size(); at-- > 1;) {
      if (words_.may_cut(text, at)) return at;
    }
    return 0;
  }
  // Bytes at the end that only begin a character are left as they are, as by other tokenizers. The library would make a
  // U+FFFD of each, and something else once the others are there: a text that grows could not be written as it does.
  std::string decode(std::span<const int32_t> tokens) const override {
    constexpr size_t kMost = 3;  // a fourth byte would end any character
    std::string bytes;
    while (bytes.size() < std::min(kMost, tokens.size())) {
      const auto found = bytes_.find(tokens[tokens.size() - 1 - bytes.size()]);
      if (found == bytes_.end()) break;
      bytes.insert(bytes.begin(), found->second);
    }
    bytes.erase(0, whole_characters(bytes));
    return processor_->decode(tokens.first(tokens.size() - bytes.size())).append(bytes);
  }

 private:
  void encode(std::string_view text, bool begins, std::vector<int32_t>& tokens) const {
    const auto cache = caches_.lend();
    while (!text.empty()) {
      size_t end = 1;
      while (end < text.size() && !words_.may_cut(text, end)) ++end;
      // The library puts a blank before any text; for a word within a text it replaces the word's own.
      const size_t blank = !begins && prefix_ && text[0] == ' ' ? 1 : 0;
      cache->encode(text.substr(blank, end - blank), tokens,
                    [&](std::string_view word, std::vector<int32_t>& out) { processor_->encode(word, out); });
      text.remove_prefix(end);
      begins = false;
    }
  }

  std::unique_ptr<sentencepiece_module::Processor> processor_;
  Words words_;
  bool prefix_;
  int32_t end_;
  std::string end_text_;
  std::unordered_map<int32_t, char> bytes_;  // of the pieces that stand for a byte
  mutable ScratchPool<WordCache> caches_;
};

}  // namespace

bool has_sentencepiece() {
  return true;
}

std::unique_ptr<Tokenizer> parse_sentencepiece_tokenizer(const std::string& bytes, const std::string& origin,
                                                         const std::string& end_of_document) {
  const SentencePieceModel model = SentencePieceModel::parse(bytes, origin);
  std::unique_ptr<sentencepiece_module::Processor> processor(module().load(bytes));
  if (!processor || processor->pieces() != static_cast<int64_t>(model.pieces.size())) {
    throw InputError(
        fmt::format("{}: sentencepiece does not take this model; it is damaged, or from a later version", origin));
  }
  const auto end = end_of_document.empty() ? processor->end_of_sentence() : model.find(end_of_document).value_or(-1);
  if (end < 0) {
    throw InputError(
        end_of_document.empty()
            ? fmt::format("{}: has no piece that ends a text; name one with --end-of-document", origin)
            : fmt::format(
                  "{}: has no piece '{}' to end documents with; name another with gyre prepare --end-of-document",
                  origin, printable(end_of_document)));
  }
  return std::make_unique<SentencePieceTokenizer>(std::move(processor), model, end);
}

std::string train_bpe_tokenizer(const std::vector<std::string>& sample, int64_t vocabulary_size, bool text_has_more) {
  std::string trained;
  const std::string fault = module().train(sample, vocabulary_size, trained);
  if (fault.empty()) return trained;
  size_t sampled_bytes = 0;
  if (text_has_more) {
    for (const std::string& line : sample) sampled_bytes += line.size();
  }
  throw InputError(explain_training_fault(fault, vocabulary_size, sampled_bytes));
}

}  // namespace gyre
