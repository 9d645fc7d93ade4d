// Loads the sentencepiece module and speaks to it.
#include <dlfcn.h>
#include <fmt/format.h>

#include <charconv>

#include "gyre/core/error.h"
#include "gyre/data/bpe/module.h"
#include "gyre/data/tokenizer.h"

namespace gyre {
namespace {

// Beside the program, as installed, or where it was built.
void* open_module() {
  std::error_code none;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
  for (const auto& path :
       {program / GYRE_BPE_NAME, program / "../lib/gyre" / GYRE_BPE_NAME, std::filesystem::path(GYRE_BPE_PATH)}) {
    if (!std::filesystem::exists(path, none)) continue;
    if (void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND)) return handle;
    throw InputError(
        fmt::format("{}: cannot be loaded: {}; is libsentencepiece installed?", path.string(), ::dlerror()));
  }
  throw InputError(fmt::format("{} is not beside the program; build gyre again", GYRE_BPE_NAME));
}

// Loaded once and never unloaded: tokenizers' code is in it.
const bpe::Module& module() {
  static void* const handle = open_module();
  const auto* entry = static_cast<const bpe::Module*>(::dlsym(handle, bpe::kEntryName));
  if (entry == nullptr) throw InputError(fmt::format("{} is of another version; build gyre again", GYRE_BPE_NAME));
  return *entry;
}

// The number that follows `words` in the library's message; 0 where it is not there.
int64_t number_after(const std::string& message, const std::string& words) {
  const size_t at = message.find(words);
  int64_t number = 0;
  if (at != std::string::npos) {
    const char* begin = message.data() + at + words.size();
    std::from_chars(begin, message.data() + message.size(), number);
  }
  return number;
}

// The trainer's messages are about its own source. Two of them are what a user can do something about.
std::string in_our_words(const std::string& fault, int64_t vocabulary_size) {
  const int64_t most = number_after(fault, "a value <= ");
  if (most >= kSmallestVocabulary) {
    return fmt::format("--vocab-size is {}, and this text has {} pieces at most; give {} or less, or more text",
                       vocabulary_size, most, most);
  }
  if (most > 0) {
    return fmt::format("this text is too short for bpe: it has {} pieces at most; give more text, or --tokenizer byte",
                       most);
  }
  const int64_t least = number_after(fault, " vs ");
  if (least > 0) {
    return fmt::format("--vocab-size is {}, and this text's characters alone are {} pieces; give {} or more",
                       vocabulary_size, least, least);
  }
  return fmt::format(
      "no vocabulary of {} pieces can be learnt from this text; try another --vocab-size, or --tokenizer "
      "byte",
      vocabulary_size);
}

}  // namespace

bool has_bpe() {
  return true;
}

std::unique_ptr<Tokenizer> parse_bpe_tokenizer(const std::string& model, const std::filesystem::path& origin) {
  std::unique_ptr<Tokenizer> tokenizer(module().load(model));
  if (!tokenizer)
    throw InputError(fmt::format("{}: not a sentencepiece model; run gyre prepare again", origin.string()));
  return tokenizer;
}

std::string train_bpe_tokenizer(const std::vector<std::string>& sample, int64_t vocabulary_size) {
  std::string trained;
  const std::string fault = module().train(sample, vocabulary_size, trained);
  if (!fault.empty()) throw InputError(in_our_words(fault, vocabulary_size));
  return trained;
}

}  // namespace gyre
