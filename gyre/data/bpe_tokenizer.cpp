// Loads the sentencepiece module and speaks to it.
#include <dlfcn.h>
#include <fmt/format.h>

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
  if (!fault.empty()) {
    throw InputError(fmt::format("--vocab-size {} does not suit this text: {}", vocabulary_size, fault));
  }
  return trained;
}

}  // namespace gyre
