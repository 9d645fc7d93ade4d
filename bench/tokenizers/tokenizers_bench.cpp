// The speed of our tokenizers, in processor time of one thread, compared in alternating rounds with Hugging Face's
// tokenizers, if the Python has them.
//   tokenizers_bench TEXT TOKENIZER... [--rounds N] [--megabytes N] [--python PATH]
// TEXT: a UTF-8 file. TOKENIZER: a file or directory, as for `gyre prepare --tokenizer`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/tokenizers/hugging_face_files.h"
#include "gyre/tokenizers/tokenizer_model.h"
#include "process.h"
#include "support/temporary_directory.h"
#include "timing.h"

namespace gyre::bench {
namespace {

namespace fs = std::filesystem;

// The first `bytes` bytes of the text, cut at line ends into documents of about 64 KB.
std::vector<std::string> documents_of(std::string_view text, size_t bytes) {
  constexpr size_t kDocument = 64 << 10;
  std::vector<std::string> documents;
  size_t taken = 0;
  while (!text.empty() && taken < bytes) {
    const size_t end = text.find('\n', std::min(kDocument, text.size()));
    const std::string_view document = text.substr(0, end == std::string_view::npos ? end : end + 1);
    documents.emplace_back(document);
    taken += document.size();
    text.remove_prefix(document.size());
  }
  return documents;
}

struct Encoded {
  double seconds = 0;
  size_t tokens = 0;
};

Encoded encode_all(const Tokenizer& tokenizer, const std::vector<std::string>& documents) {
  std::vector<int32_t> tokens;
  size_t count = 0;
  const double start = thread_seconds();
  for (const std::string& document : documents) {
    tokens.clear();
    tokenizer.encode(document, tokens);
    count += tokens.size();
  }
  return {thread_seconds() - start, count};
}

// Hugging Face's tokenizers with the same vocabularies, in a Python process.
class HuggingFace {
 public:
  // Null if that Python has no `tokenizers`.
  static std::unique_ptr<HuggingFace> start(const std::string& python, const std::vector<std::string>& documents,
                                            const std::vector<TokenizerModel>& models) {
    auto result = std::unique_ptr<HuggingFace>(new HuggingFace(python, documents, models));
    const auto version = result->peer_->hear();
    if (!version) return nullptr;
    fmt::print("beside it: {}\n", *version);
    return result;
  }
  Encoded encode_all(size_t tokenizer) {
    peer_->say(std::to_string(tokenizer));
    Encoded result;
    std::istringstream(peer_->hear().value_or("0 0")) >> result.seconds >> result.tokens;
    return result;
  }

 private:
  HuggingFace(const std::string& python, const std::vector<std::string>& documents,
              const std::vector<TokenizerModel>& models) {
    const fs::path texts = folder_ / "documents.json";
    write_new_file(texts, nlohmann::json(documents).dump());
    std::vector<std::string> command = {python, GYRE_TOKENIZERS_BESIDE, texts.string()};
    for (size_t i = 0; i < models.size(); ++i) {
      const fs::path path = folder_ / fmt::format("{}.json", i);
      write_new_file(path, hugging_face_files(models[i], "the tokenizer").tokenizer);
      command.push_back(path.string());
    }
    peer_.emplace(command, std::vector<std::pair<std::string, std::string>>{{"TOKENIZERS_PARALLELISM", "false"}});
  }

  testing_support::TemporaryDirectory folder_;
  std::optional<Peer> peer_;
};

struct Flags {
  std::string text, python = "python3";
  std::vector<std::string> tokenizers;
  int rounds = 5;
  size_t megabytes = 8;
};

void run(const Flags& flags) {
  const std::vector<std::string> documents = documents_of(read_file(flags.text, kAnyLength), flags.megabytes << 20);
  double megabytes = 0;
  for (const std::string& document : documents) megabytes += 1e-6 * static_cast<double>(document.size());
  std::vector<TokenizerModel> models;
  std::vector<std::unique_ptr<Tokenizer>> tokenizers;
  for (const std::string& path : flags.tokenizers) {
    models.push_back(read_tokenizer(path));
    tokenizers.push_back(make_tokenizer(models.back(), path));
  }
  fmt::print("{:.1f} MB in {} documents, one thread\n", megabytes, documents.size());
  const auto beside = HuggingFace::start(flags.python, documents, models);
  if (!beside) fmt::print("nothing beside it: {} has no tokenizers\n", flags.python);

  std::vector<std::vector<double>> ours(tokenizers.size()), ratios(tokenizers.size());
  for (int round = 1; round <= flags.rounds; ++round) {
    for (size_t i = 0; i < tokenizers.size(); ++i) {
      const Encoded encoded = encode_all(*tokenizers[i], documents);
      ours[i].push_back(megabytes / encoded.seconds);
      fmt::print("round {}  {:<40} {:>7.1f} MB/s, {} tokens", round, flags.tokenizers[i], ours[i].back(),
                 encoded.tokens);
      if (beside) {
        const Encoded other = beside->encode_all(i);
        ratios[i].push_back(other.seconds / encoded.seconds);
        fmt::print(" ({} theirs), {:.2f} times as fast", other.tokens, ratios[i].back());
      }
      fmt::print("\n");
    }
  }
  fmt::print("\nmedians of {} rounds\n", flags.rounds);
  for (size_t i = 0; i < tokenizers.size(); ++i) {
    fmt::print("{:<40} {:>7.1f} MB/s a core", flags.tokenizers[i], median(ours[i]));
    if (beside) fmt::print(", {:.2f} times as fast as Hugging Face's", median(ratios[i]));
    fmt::print("\n");
  }
}

}  // namespace
}  // namespace gyre::bench

int main(int argc, char** argv) {
  gyre::bench::Flags flags;
  CLI::App app{"Text to tokens: MB a second of one core"};
  app.add_option("text", flags.text)->required()->check(CLI::ExistingFile);
  app.add_option("tokenizers", flags.tokenizers)->required();
  app.add_option("--rounds", flags.rounds)->check(CLI::PositiveNumber);
  app.add_option("--megabytes", flags.megabytes, "Of the text")->check(CLI::PositiveNumber);
  app.add_option("--python", flags.python, "With tokenizers");
  CLI11_PARSE(app, argc, argv);
  try {
    gyre::bench::run(flags);
  } catch (const gyre::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
