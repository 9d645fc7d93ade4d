// gyre prepare TEXT...: text into token files.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/data/prepare.h"
#include "gyre/data/token_file.h"
#include "gyre/report/byte_progress.h"
#include "gyre/report/status_line.h"
#include "gyre/tokenizers/tokenizer.h"
#include "interrupts.h"
#include "number_flag.h"
#include "output.h"

namespace gyre::app {
namespace {

struct Flags {
  PrepareOptions options;
  std::string out;
  std::string separator;
  bool json = false;
};

// Replaces \n, \r, \t and \\ by what they stand for, since a shell's quotes do not.
std::string unescaped(const std::string& text) {
  static const std::string kLetters = "nrt\\", kMeant = "\n\r\t\\";
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t letter = text[i] == '\\' && i + 1 < text.size() ? kLetters.find(text[i + 1]) : std::string::npos;
    plain += letter == std::string::npos ? text[i] : kMeant[letter];
    if (letter != std::string::npos) ++i;
  }
  return plain;
}

void run(Flags& flags) {
  flags.options.out = flags.out;
  flags.options.separator = unescaped(flags.separator);
  const PrepareResult result = make_unless_stopped([&](const std::stop_token& stop) {
    ByteProgress progress(stderr, can_redraw(stderr));
    flags.options.progress = [&](const PrepareProgress& now) { progress.at(now.doing, now.done, now.total); };
    flags.options.stop = stop;
    return prepare(flags.options);
  });
  if (flags.json) {
    const nlohmann::ordered_json json = {{"out", flags.out},
                                         {"tokenizer", flags.options.tokenizer},
                                         {"vocabulary", result.vocabulary},
                                         {"end_of_document", result.end_of_document},
                                         {"documents", result.documents},
                                         {"text_bytes", result.text_bytes},
                                         {"train_tokens", result.train_tokens},
                                         {"val_tokens", result.val_tokens}};
    print_object(json);
    return;
  }
  print("{}: {} of text in {}, vocabulary {}, {} to train on and {} to validate; {} ends documents\n",
        printable(flags.out), human_bytes(static_cast<double>(result.text_bytes)),
        counted(result.documents, "document"), result.vocabulary, counted(result.train_tokens, "token"),
        result.val_tokens, result.end_of_document);
}

}  // namespace

void add_prepare(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("prepare", "Turn UTF-8 text into token files");
  command->add_option("text", flags->options.texts, "Text files, also as .gz or .zst; - is standard input")
      ->check(some_path())
      ->required();
  command->add_option("--out", flags->out, "Directory to make")->check(directory_to_make())->required();
  command->add_option("--format", flags->options.format, "text | jsonl; auto: jsonl for names in .jsonl and .json")
      ->check(offers({"auto", "text", "jsonl"}));
  command->add_option("--field", flags->options.field, "For jsonl: key of the string that is the document");
  command->add_option("--separator", flags->separator,
                      "For plain text: what separates documents, such as '<|endoftext|>' or '\\n\\n\\n'; without it "
                      "each file is a document");
  command
      ->add_option("--tokenizer", flags->options.tokenizer,
                   "byte | bpe (trained on the texts), or a tokenizer of yours: its file or directory")
      ->check(offers({"byte", "bpe"}));
  add_number(*command, "--vocab-size", flags->options.vocabulary_size, {kSmallestVocabulary, kLargestVocabulary},
             "Size of the bpe vocabulary");
  command->add_option("--end-of-document", flags->options.end_of_document,
                      "Token that ends documents, if it is not the one that your tokenizer names");
  command->add_option("--val-fraction", flags->options.val_fraction,
                      "Fraction kept for validation: of the documents if there are many, else the end of each");
  add_number(*command, "--shard-tokens", flags->options.shard_tokens, {kFewestOfAShard, TokenFileWriter::kMostTokens},
             "Tokens of a file, at most; more go to further files, train_000002.bin and so on");
  add_number(*command, "--seed", flags->options.seed, {0},
             "Random seed for the choice of documents kept for validation");
  add_number(*command, "--threads", flags->options.threads, {0, kMostPrepareThreads},
             "0: one for each core; the tokens are the same");
  command->add_flag("--overwrite", flags->options.overwrite, "Replace prepared text that is in --out already");
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags, command] {
    if (flags->options.tokenizer != "bpe" && command->count("--vocab-size") > 0) {
      throw InputError("--vocab-size is for --tokenizer bpe; other tokenizers have a fixed vocabulary: leave it out");
    }
    if (flags->separator.empty() && command->count("--separator") > 0) {
      throw InputError("--separator is empty; leave it out, and each file is a document");
    }
    run(*flags);
  });
}

}  // namespace gyre::app
